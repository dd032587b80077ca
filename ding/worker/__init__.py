"""Workers that collect, store, learn and evaluate what a policy and a config describe."""

from ding.worker.battle import BattleEpisodeCollector, BattleEvaluator, BattleSampleCollector
from ding.worker.buffer import (
    AdvancedReplayBuffer,
    AdvancedSequenceReplayBuffer,
    ElasticReplayBuffer,
    EpisodeReplayBuffer,
    IBuffer,
    NaiveReplayBuffer,
    SequenceReplayBuffer,
    create_buffer,
    get_buffer_cls,
)
from ding.worker.collector import (
    EpisodeCollector,
    EpisodeSerialCollector,
    ISerialCollector,
    PlayersCollector,
    SampleCollector,
    SampleSerialCollector,
    create_serial_collector,
    get_serial_collector_cls,
)
from ding.worker.commander import Commander
from ding.worker.evaluator import (
    BaseSerialEvaluator,
    EvalResult,
    VectorEvalMonitor,
    create_serial_evaluator,
    evaluation_due,
)
from ding.worker.learner import BaseLearner, LearnerHook, create_learner, register_learner_hook

BaseSerialCommander = Commander
BattleEpisodeSerialCollector = BattleEpisodeCollector
BattleInteractionSerialEvaluator = BattleEvaluator
BattleSampleSerialCollector = BattleSampleCollector
InteractionSerialEvaluator = BaseSerialEvaluator
NaiveBuffer = NaiveReplayBuffer

__all__ = [
    "AdvancedReplayBuffer",
    "AdvancedSequenceReplayBuffer",
    "BaseLearner",
    "BaseSerialCommander",
    "BaseSerialEvaluator",
    "BattleEpisodeCollector",
    "BattleEpisodeSerialCollector",
    "BattleEvaluator",
    "BattleInteractionSerialEvaluator",
    "BattleSampleCollector",
    "BattleSampleSerialCollector",
    "Commander",
    "ElasticReplayBuffer",
    "EpisodeCollector",
    "EpisodeReplayBuffer",
    "EpisodeSerialCollector",
    "EvalResult",
    "IBuffer",
    "ISerialCollector",
    "InteractionSerialEvaluator",
    "LearnerHook",
    "NaiveBuffer",
    "NaiveReplayBuffer",
    "PlayersCollector",
    "SampleCollector",
    "SampleSerialCollector",
    "SequenceReplayBuffer",
    "VectorEvalMonitor",
    "create_buffer",
    "create_learner",
    "create_serial_collector",
    "create_serial_evaluator",
    "evaluation_due",
    "get_buffer_cls",
    "get_serial_collector_cls",
    "register_learner_hook",
]
