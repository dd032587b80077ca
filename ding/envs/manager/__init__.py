"""Many envs behind one `step`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ding.envs.base_env import BaseEnv, StepByEnv
from ding.envs.manager.interface import EnvManager
from ding.envs.manager.local import BaseEnvManager
from ding.envs.manager.process import AsyncSubprocessEnvManager, SyncSubprocessEnvManager
from ding.envs.manager.slot import EnvState
from ding.envs.manager.thread import ThreadEnvManager
from ding.utils.registry import ENV_MANAGER_REGISTRY, class_of

__all__ = [
    "AsyncSubprocessEnvManager",
    "BaseEnvManager",
    "EnvManager",
    "EnvState",
    "StepByEnv",
    "SyncSubprocessEnvManager",
    "ThreadEnvManager",
    "create_env_manager",
    "get_env_manager_cls",
    "manager_of",
]


def get_env_manager_cls(cfg: Mapping[str, Any]) -> type[EnvManager]:
    """The class that `type` names; `base` if it names none."""
    return class_of(ENV_MANAGER_REGISTRY, {"type": "base", **cfg})


def create_env_manager(
    cfg: Mapping[str, Any], env_fns: Sequence[Callable[[], BaseEnv]]
) -> EnvManager:
    return get_env_manager_cls(cfg)(env_fns, cfg)


def manager_of(
    cfg: Mapping[str, Any], env_fn: Callable[..., BaseEnv], env_cfgs: Sequence[Any] | None
) -> EnvManager:
    """A manager as `cfg` says, with an env `env_fn(cfg=...)` for each of `env_cfgs`."""
    return create_env_manager(cfg, [partial(env_fn, cfg=env_cfg) for env_cfg in env_cfgs or []])
