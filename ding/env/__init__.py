"""Another name of `ding.envs`."""

from ding.envs import (
    BaseEnv,
    BaseEnvManager,
    BaseEnvTimestep,
    DingEnvWrapper,
    EnvState,
    StepByEnv,
    VecStep,
    create_env_manager,
    create_env_wrapper,
    get_env_cls,
    get_env_manager_cls,
    get_vec_env_setting,
    is_truncated,
)

__all__ = [
    "BaseEnv",
    "BaseEnvManager",
    "BaseEnvTimestep",
    "DingEnvWrapper",
    "EnvState",
    "StepByEnv",
    "VecStep",
    "create_env_manager",
    "create_env_wrapper",
    "get_env_cls",
    "get_env_manager_cls",
    "get_vec_env_setting",
    "is_truncated",
]
