"""Simulators beside Gymnasium: the extra that installs each, and what they cannot do."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from importlib import import_module
from multiprocessing import parent_process
from pickle import PicklingError
from types import ModuleType
from typing import Any

import gymnasium as gym
from gymnasium.utils import EzPickle

from ding.utils.errors import DingError, nearest

_BY_MODULE = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco"}
_BY_PREFIX = {
    "ALE/": ("ale_py", "ale-py", "atari"),
    "MiniGrid-": ("minigrid", "minigrid", "minigrid"),
    "BabyAI-": ("minigrid", "minigrid", "minigrid"),
}
"""Start of an id to the module that registers it, its package, and the extra."""


def register_package(env_id: str) -> None:
    """Make the ids of another package known, if this is one of them."""
    for prefix, (module, package, extra) in _BY_PREFIX.items():
        if not env_id.startswith(prefix) or env_id in gym.registry:
            continue
        try:
            gym.register_envs(import_module(module))
        except ModuleNotFoundError as error:
            raise missing_package(env_id, package, extra) from error


def unknown_id(env_id: str, known: Iterable[str]) -> str:
    """The tail of a message about an id that nobody has registered."""
    hint = nearest(env_id, known)
    if parent_process() is not None:
        return (
            f"{hint}; what a script registers is unknown in the processes that it spawns: name the "
            "module that registers it in create_config.env.import_names"
        )
    if hint or not re.search(r"-v\d+$", env_id):
        return hint
    return f"; is its package installed? an id of any other package is 'package:{env_id}'"


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


def env_module(name: str) -> ModuleType:
    """Import a module of PettingZoo's envs; new versions only warn of this way in."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_module(name)


def refuse_rebuilt(env: gym.Env[Any, Any]) -> None:
    """Raise if unpickling would build the simulator anew: the episode in it would be lost."""
    simulator = env.unwrapped
    if isinstance(simulator, EzPickle):
        raise PicklingError(f"{type(simulator).__name__} does not keep its episode when pickled")
