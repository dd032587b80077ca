"""From names in configs (`type="dqn"`) to classes, by tables of import paths resolved on use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from ding.utils.errors import DingError, nearest

T = TypeVar("T")


class Registry:
    """`{"dqn": "ding.policy.dqn:DQNPolicy"}`, imported only when the name is asked for."""

    def __init__(self, name: str, table: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._table: dict[str, str | Any] = dict(table or {})

    def register(self, name: str | None = None, *, force: bool = False) -> Callable[[T], T]:
        """Decorator: the class (or function) below is known under `name` from here on."""

        def add(item: T) -> T:
            key = name or item.__name__  # type: ignore[attr-defined]
            known = self._table.get(key)
            path = f"{item.__module__}:{item.__qualname__}"  # type: ignore[attr-defined]
            if known is not None and not force and _path_of(known) != path:
                raise DingError(
                    f"{self.name} '{key}' is registered already as {_path_of(known)}; "
                    "choose another name or pass force=True"
                )
            self._table[key] = item
            return item

        return add

    def get(self, name: str) -> Any:
        if name not in self._table:
            raise DingError(f"unknown {self.name} '{name}'{nearest(name, self._table)}")
        item = self._table[name]
        if isinstance(item, str):
            module, _, attribute = item.partition(":")
            item = self._table[name] = getattr(import_module(module), attribute)
        return item

    def build(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.get(name)(*args, **kwargs)

    def query(self) -> list[str]:
        return sorted(self._table)

    def query_details(self, names: Iterable[str] | None = None) -> dict[str, tuple[str, int]]:
        """Name to (file, line) of its definition."""
        details = {}
        for name in names if names is not None else self.query():
            details[name] = _place_of(self.get(name))
        return details

    def __contains__(self, name: object) -> bool:
        return name in self._table


def _place_of(item: Any) -> tuple[str, int]:
    try:
        return inspect.getsourcefile(item) or "?", inspect.getsourcelines(item)[1]
    except (OSError, TypeError):  # typed in, or its file is gone
        return "?", 0


def _path_of(item: Any) -> str:
    return item if isinstance(item, str) else f"{item.__module__}:{item.__qualname__}"


def import_names(names: str | Iterable[str], where: str = "import_names") -> None:
    """Import the modules that a config names so that what they register is known."""
    for name in [names] if isinstance(names, str) else names:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            raise DingError(
                f"{where}: cannot import '{name}': {error}; is it installed and spelt right?"
            ) from error


def class_of(registry: Registry, cfg: Mapping[str, Any]) -> Any:
    """The class that a component config `{type, import_names}` names."""
    import_names(cfg.get("import_names") or [], where=f"import_names of {registry.name}")
    return registry.get(cfg["type"])


_ATARI = "dizoo.atari.envs.atari_env:AtariEnv"
_CARTPOLE = "dizoo.classic_control.cartpole.envs.cartpole_env:CartPoleEnv"
_NO_VELOCITY = "dizoo.classic_control.cartpole.envs.no_velocity_env:NoVelocityEnv"
_FIXED_CARTPOLE = "dizoo.classic_control.cartpole.envs.fixed_horizon_env:FixedHorizonCartPoleEnv"
_SPARSE_CAR = "dizoo.classic_control.mountain_car.envs.sparse_env:SparseMountainCarEnv"
_PENDULUM = "dizoo.classic_control.pendulum.envs.pendulum_env:PendulumEnv"
_GYM_HYBRID = "dizoo.gym_hybrid.envs.gym_hybrid_env:GymHybridEnv"
_PETTING_ZOO = "ding.envs.pettingzoo_env:PettingZooEnv"
_WRAPPER = "ding.envs.gym_env:DingEnvWrapper"

ENV_REGISTRY = Registry(
    "env",
    {
        "atari": _ATARI,
        "bitflip": "dizoo.bitflip.envs.bitflip_env:BitFlipEnv",
        "deep_sea": "dizoo.toy.deep_sea.envs.deep_sea_env:DeepSeaEnv",
        "minigrid": "dizoo.minigrid.envs.minigrid_env:MiniGridEnv",
        "mountain_car_sparse": _SPARSE_CAR,
        "reach": "dizoo.toy.reach.envs.reach_env:ReachEnv",
        "cartpole": _CARTPOLE,
        "cartpole_fixed": _FIXED_CARTPOLE,
        "cartpole_no_velocity": _NO_VELOCITY,
        "lattice": "dizoo.toy.lattice.envs.lattice_env:LatticeEnv",
        "pendulum": _PENDULUM,
        "gym_hybrid": _GYM_HYBRID,
        "tictactoe": "dizoo.board_games.envs.tictactoe_env:TicTacToeEnv",
        "connect_four": "dizoo.board_games.envs.connect_four_env:ConnectFourEnv",
        "kuhn_poker": "dizoo.poker.envs.kuhn_poker_env:KuhnPokerEnv",
        "leduc_poker": "dizoo.poker.envs.leduc_poker_env:LeducPokerEnv",
        "league_demo": "dizoo.league_demo.envs.game_env:GameEnv",
        "micro_battle": "dizoo.micro_battle.envs.micro_battle_env:MicroBattleEnv",
        "micro_duel": "dizoo.micro_battle.envs.duel_env:DuelEnv",
        "slime_volley": "dizoo.slime_volley.envs.slime_volley_env:SlimeVolleyEnv",
        "smac": "dizoo.smac.envs.smac_env:SMACEnv",
        "matrix_game": "dizoo.matrix_games.envs.matrix_game_env:MatrixGameEnv",
        "pettingzoo": _PETTING_ZOO,
        "petting_zoo": _PETTING_ZOO,
        "pettingzoo_game": "ding.envs.pettingzoo_game:PettingZooGame",
        "ding_env_wrapper": _WRAPPER,
        "ding_env_wrapper_generated": _WRAPPER,
        "gym": _WRAPPER,
    },
)
ENV_MANAGER_REGISTRY = Registry(
    "env_manager",
    {
        "base": "ding.envs.manager.local:BaseEnvManager",
        "subprocess": "ding.envs.manager.process:SyncSubprocessEnvManager",
        "async_subprocess": "ding.envs.manager.process:AsyncSubprocessEnvManager",
        "thread": "ding.envs.manager.thread:ThreadEnvManager",
        "gym_vector": "ding.envs.manager.gym_vector:GymVectorEnvManager",
        "env_pool": "ding.envs.manager.env_pool:PoolEnvManager",
    },
)
ENV_WRAPPER_REGISTRY = Registry(
    "env_wrapper",
    {
        name: f"ding.envs.wrappers:{cls}"
        for name, cls in {
            "noop_reset": "NoopResetWrapper",
            "max_and_skip": "MaxAndSkipWrapper",
            "episodic_life": "EpisodicLifeWrapper",
            "fire_reset": "FireResetWrapper",
            "warp_frame": "WarpFrameWrapper",
            "scaled_float_frame": "ScaledFloatFrameWrapper",
            "rescale_obs": "RescaleObsWrapper",
            "clip_reward": "ClipRewardWrapper",
            "frame_stack": "FrameStackWrapper",
            "obs_norm": "ObsNormWrapper",
            "reward_norm": "RewardNormWrapper",
            "time_limit": "TimeLimitWrapper",
            "ram": "RamWrapper",
            "delay_reward": "DelayRewardWrapper",
            "obs_plus_prev_action_reward": "ObsPlusPrevActRewWrapper",
            "eval_episode_return": "EvalEpisodeReturnWrapper",
            "flat_obs": "FlatObsWrapper",
        }.items()
    },
)
POLICY_REGISTRY = Registry(
    "policy",
    {
        "bc": "ding.policy.bc:BehaviourCloningPolicy",
        "dqn": "ding.policy.dqn:DQNPolicy",
        "c51": "ding.policy.c51:C51Policy",
        "qrdqn": "ding.policy.qrdqn:QRDQNPolicy",
        "iqn": "ding.policy.iqn:IQNPolicy",
        "fqf": "ding.policy.fqf:FQFPolicy",
        "rainbow": "ding.policy.rainbow:RainbowPolicy",
        "mdqn": "ding.policy.mdqn:MDQNPolicy",
        "sql": "ding.policy.sql:SQLPolicy",
        "sqn": "ding.policy.sqn:SQNPolicy",
        "averaged_dqn": "ding.policy.averaged_dqn:AveragedDQNPolicy",
        "bdq": "ding.policy.bdq:BDQPolicy",
        "dqfd": "ding.policy.dqfd:DQFDPolicy",
        "r2d2": "ding.policy.r2d2:R2D2Policy",
        "r2d3": "ding.policy.r2d3:R2D3Policy",
        "r2d2_gtrxl": "ding.policy.r2d2_gtrxl:R2D2GTrXLPolicy",
        "ngu": "ding.policy.ngu:NGUPolicy",
        "a2c": "ding.policy.a2c:A2CPolicy",
        "acer": "ding.policy.acer:ACERPolicy",
        "impala": "ding.policy.impala:IMPALAPolicy",
        "pg": "ding.policy.pg:PGPolicy",
        "ppg": "ding.policy.ppg:PPGPolicy",
        "ppo": "ding.policy.ppo:PPOPolicy",
        "ppo_recurrent": "ding.policy.ppo_recurrent:PPORecurrentPolicy",
        "ppo_offpolicy": "ding.policy.ppo_offpolicy:PPOOffPolicy",
        "sac": "ding.policy.sac:SACPolicy",
        "discrete_sac": "ding.policy.discrete_sac:DiscreteSACPolicy",
        "ddpg": "ding.policy.ddpg:DDPGPolicy",
        "td3": "ding.policy.td3:TD3Policy",
        "d4pg": "ding.policy.d4pg:D4PGPolicy",
        "pdqn": "ding.policy.pdqn:PDQNPolicy",
        "paddpg": "ding.policy.paddpg:PADDPGPolicy",
        "mappo": "ding.policy.mappo:MAPPOPolicy",
        "ippo": "ding.policy.mappo:IPPOPolicy",
        "happo": "ding.policy.happo:HAPPOPolicy",
        "coma": "ding.policy.coma:COMAPolicy",
        "masac": "ding.policy.masac:MASACPolicy",
        "continuous_masac": "ding.policy.masac:ContinuousMASACPolicy",
        "maddpg": "ding.policy.maddpg:MADDPGPolicy",
        "matd3": "ding.policy.maddpg:MATD3Policy",
        "qmix": "ding.policy.qmix:QMIXPolicy",
        "qplex": "ding.policy.qmix:QPLEXPolicy",
        "wqmix": "ding.policy.wqmix:WQMIXPolicy",
        "qtran": "ding.policy.qtran:QTRANPolicy",
        "collaq": "ding.policy.collaq:CollaQPolicy",
        "vdn": "ding.policy.qmix:VDNPolicy",
        "idqn": "ding.policy.qmix:IDQNPolicy",
    },
)
_FOR_AGENTS = {
    "ppo": "mappo",
    "sac": "continuous_masac",
    "discrete_sac": "masac",
    "ddpg": "maddpg",
    "td3": "matd3",
}


def policy_name(policy_cfg: Mapping[str, Any], multi_agent: Any = None) -> str:
    """Registered name of the policy that a config means by `type` and `multi_agent`.

    Older configs name the version with a command mode; here every policy has one.
    """
    name = str(policy_cfg["type"]).removesuffix("_command")
    several = policy_cfg.get("multi_agent") if multi_agent is None else multi_agent
    return _FOR_AGENTS.get(name, name) if several is True else name


MODEL_REGISTRY = Registry(
    "model",
    {
        "dqn": "ding.model.dqn:DQN",
        # One network under two names: what was cloned can go on as a Q network.
        "discrete_bc": "ding.model.dqn:DQN",
        "continuous_bc": "ding.model.bc:ContinuousBC",
        "c51dqn": "ding.model.q_learning:C51DQN",
        "rainbowdqn": "ding.model.q_learning:RainbowDQN",
        "qrdqn": "ding.model.q_learning:QRDQN",
        "iqn": "ding.model.q_learning:IQN",
        "fqf": "ding.model.q_learning:FQF",
        "bdq": "ding.model.q_learning:BDQ",
        "sqn": "ding.model.q_learning:SQNModel",
        "drqn": "ding.model.recurrent:DRQN",
        "ngu": "ding.model.recurrent:NGU",
        "gtrxldqn": "ding.model.recurrent:GTrXLDQN",
        "recurrent_vac": "ding.model.recurrent:RecurrentVAC",
        "vac": "ding.model.actor_critic:VAC",
        "hybrid_vac": "ding.model.hybrid:HybridVAC",
        "pg": "ding.model.policy_gradient:PG",
        "ppg": "ding.model.policy_gradient:PPG",
        "acer": "ding.model.policy_gradient:ACER",
        "qac": "ding.model.actor_critic:QAC",
        "continuous_qac": "ding.model.actor_critic:QAC",
        "discrete_qac": "ding.model.actor_critic:DiscreteQAC",
        "qac_dist": "ding.model.qac_dist:QACDIST",
        "hybrid_qac": "ding.model.hybrid:HybridQAC",
        "pdqn": "ding.model.hybrid:PDQN",
        "mavac": "ding.model.agent_actor_critic:MAVAC",
        "havac": "ding.model.havac:HAVAC",
        "coma": "ding.model.coma:COMA",
        "discrete_maqac": "ding.model.maqac:DiscreteMAQAC",
        "continuous_maqac": "ding.model.maqac:ContinuousMAQAC",
        "qmix": "ding.model.agents:QMix",
        "wqmix": "ding.model.central:WQMix",
        "qtran": "ding.model.central:QTran",
        "collaq": "ding.model.collaq:CollaQ",
    },
)
MIXER_REGISTRY = Registry(
    "mixer",
    {
        "qmix": "ding.model.mixers:MonotonicMixer",
        "qplex": "ding.model.mixers:DuplexMixer",
        "vdn": "ding.model.mixers:SumMixer",
    },
)
BUFFER_REGISTRY = Registry(
    "buffer",
    {
        "naive": "ding.worker.buffer.naive:NaiveReplayBuffer",
        "advanced": "ding.worker.buffer.advanced:AdvancedReplayBuffer",
        "elastic": "ding.worker.buffer.elastic:ElasticReplayBuffer",
        "episode": "ding.worker.buffer.episode:EpisodeReplayBuffer",
        "sequence": "ding.worker.buffer.sequence:SequenceReplayBuffer",
        "advanced_sequence": "ding.worker.buffer.sequence:AdvancedSequenceReplayBuffer",
        "deque": "ding.data.buffer.deque_buffer_wrapper:DequeBufferWrapper",
    },
)
LEARNER_REGISTRY = Registry("learner", {"base": "ding.worker.learner.base:BaseLearner"})
SERIAL_COLLECTOR_REGISTRY = Registry(
    "collector",
    {
        "sample": "ding.worker.collector.sample:SampleCollector",
        "episode": "ding.worker.collector.episode:EpisodeCollector",
        "sample_1v1": "ding.worker.battle.collector:BattleSampleCollector",
        "league_demo": "ding.worker.battle.collector:BattleEpisodeCollector",
        "episode_1v1": "ding.worker.battle.collector:BattleEpisodeCollector",
    },
)
SERIAL_EVALUATOR_REGISTRY = Registry(
    "evaluator",
    {
        "interaction": "ding.worker.evaluator:BaseSerialEvaluator",
        "battle_interaction": "ding.worker.battle.evaluator:BattleEvaluator",
    },
)
REWARD_MODEL_REGISTRY = Registry(
    "reward_model",
    {
        "gail": "ding.reward_model.gail:GailRewardModel",
        "icm": "ding.reward_model.icm:ICMRewardModel",
        "rnd": "ding.reward_model.rnd:RndRewardModel",
    },
)
COMMANDER_REGISTRY = Registry("commander", {"base": "ding.worker.commander:Commander"})

REGISTRIES: dict[str, Registry] = {
    registry.name: registry
    for registry in (
        ENV_REGISTRY,
        ENV_MANAGER_REGISTRY,
        ENV_WRAPPER_REGISTRY,
        POLICY_REGISTRY,
        MODEL_REGISTRY,
        MIXER_REGISTRY,
        BUFFER_REGISTRY,
        LEARNER_REGISTRY,
        SERIAL_COLLECTOR_REGISTRY,
        SERIAL_EVALUATOR_REGISTRY,
        COMMANDER_REGISTRY,
        REWARD_MODEL_REGISTRY,
    )
}
