from dizoo.toy.deep_sea.envs.deep_sea_env import DeepSeaEnv

__all__ = ["DeepSeaEnv"]
