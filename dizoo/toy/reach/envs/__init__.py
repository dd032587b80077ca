from dizoo.toy.reach.envs.reach_env import ReachEnv

__all__ = ["ReachEnv"]
