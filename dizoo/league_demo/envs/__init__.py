"""Matrix games of two players."""

from dizoo.league_demo.envs.game_env import GameEnv

__all__ = ["GameEnv"]
