from dizoo.micro_battle.envs.battle import Battles
from dizoo.micro_battle.envs.micro_battle_env import MicroBattleEnv
from dizoo.micro_battle.envs.micro_battle_vector import MicroBattleVector
from dizoo.micro_battle.envs.units import MAPS

__all__ = ["MAPS", "Battles", "MicroBattleEnv", "MicroBattleVector"]
