"""Environments: the base class, any Gymnasium env, wrappers, and managers that run many."""

from ding.envs.agents import AgentsSpace
from ding.envs.base_env import (
    BaseEnv,
    BaseEnvTimestep,
    VecStep,
    get_env_cls,
    get_vec_env_setting,
    is_truncated,
)
from ding.envs.gym_env import DingEnvWrapper
from ding.envs.manager import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    EnvState,
    StepByEnv,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
    create_env_manager,
    get_env_manager_cls,
    manager_of,
)
from ding.envs.manager.flight.file import load_flight
from ding.envs.manager.flight.replay import replay_flight
from ding.envs.manager.slot import evaluation_seeds
from ding.envs.parallel_agents import ParallelAgentsEnv
from ding.envs.wrappers import create_env_wrapper

__all__ = [
    "AgentsSpace",
    "AsyncSubprocessEnvManager",
    "BaseEnv",
    "BaseEnvManager",
    "BaseEnvTimestep",
    "DingEnvWrapper",
    "EnvState",
    "ParallelAgentsEnv",
    "StepByEnv",
    "SyncSubprocessEnvManager",
    "ThreadEnvManager",
    "VecStep",
    "create_env_manager",
    "create_env_wrapper",
    "evaluation_seeds",
    "get_env_cls",
    "get_env_manager_cls",
    "get_vec_env_setting",
    "is_truncated",
    "load_flight",
    "manager_of",
    "replay_flight",
]
