"""Battle workers: games of two seats between policies, past selves, checkpoints and bots."""

from ding.worker.battle.collector import BattleEpisodeCollector, BattleSampleCollector
from ding.worker.battle.evaluator import BattleEvaluator
from ding.worker.battle.games import Game
from ding.worker.battle.opponents import Bot, opponent_of
from ding.worker.battle.past import PastSelves

__all__ = [
    "BattleEpisodeCollector",
    "BattleEvaluator",
    "BattleSampleCollector",
    "Bot",
    "Game",
    "PastSelves",
    "opponent_of",
]
