"""Simulators beside Gymnasium: the extra that installs each, and what they cannot do."""

from __future__ import annotations

from importlib import import_module
from pickle import PicklingError
from typing import Any

import gymnasium as gym
from gymnasium.utils import EzPickle

from ding.utils.errors import DingError

_BY_MODULE = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco"}
_ATARI = "ALE/"


def register_package(env_id: str) -> None:
    """Make the ids of another package known, if this is one of them."""
    if env_id.startswith(_ATARI) and env_id not in gym.registry:
        try:
            gym.register_envs(import_module("ale_py"))
        except ModuleNotFoundError as error:
            raise missing_package(env_id, "ale-py", "atari") from error


def missing_simulator(env_id: str, error: Exception) -> DingError:
    """What to say when Gymnasium lacks a package for an env that it knows."""
    spec = gym.registry.get(env_id)
    module = str(spec.entry_point) if spec is not None else ""
    for package, extra in _BY_MODULE.items():
        if module.startswith(package):
            return missing_package(env_id, extra, extra)
    return DingError(f"cannot make env '{env_id}': {error}")


def missing_package(env_id: str, package: str, extra: str) -> DingError:
    return DingError(
        f"env '{env_id}' needs {package}; install it with: pip install 'ding-engine[{extra}]'"
    )


def refuse_rebuilt(env: gym.Env[Any, Any]) -> None:
    """Raise if unpickling would build the simulator anew: the episode in it would be lost."""
    simulator = env.unwrapped
    if isinstance(simulator, EzPickle):
        raise PicklingError(f"{type(simulator).__name__} does not keep its episode when pickled")
