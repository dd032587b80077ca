from dizoo.smac.envs.smac_env import SMACEnv

__all__ = ["SMACEnv"]
