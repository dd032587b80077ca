from dizoo.minigrid.envs.minigrid_env import MiniGridEnv

__all__ = ["MiniGridEnv"]
