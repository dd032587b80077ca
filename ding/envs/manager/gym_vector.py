"""Gymnasium's vector envs in place of many single ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from ding.envs.gym_env import DingEnvWrapper
from ding.envs.manager.interface import EnvManager
from ding.envs.manager.vector.manager import VectorEnvManager
from ding.envs.manager.vector.simulators import (
    Seeds,
    Simulators,
    own_vector,
    simulators,
)
from ding.envs.packages import missing_simulator, register_package, unknown_id
from ding.utils.errors import ConfigError, DingError, nearest

_MODES = ("auto", "vector_entry_point", "sync", "async")
# Where a subclass of DingEnvWrapper may do what a vector env would not.
_BEHAVIOUR = ("reset", "step", "_make", "_bare_env", "_registered_env")


class GymVectorEnvManager(VectorEnvManager):
    """Runs `env.env_id` as one `gymnasium.vector.VectorEnv`.

    An env id with a vectorised version (`vector_entry_point`, as CartPole-v1 has) steps all envs
    in a few NumPy operations. In the modes 'sync' and 'async' every env draws the same seeds as
    under the manager `base`; vectorised versions share one generator, seeded by all env seeds.
    """

    config: ClassVar[dict[str, Any]] = {
        **EnvManager.config,
        # 'vector_entry_point' (the vectorised version of the env id), 'sync', 'async', or 'auto':
        # the vectorised version if the id has one, else 'sync'.
        "vectorization_mode": "auto",
        # Not used: what happened in one env of a vector env cannot be replayed alone.
        "flight_dir": None,
    }

    def _check_wrappers(self, wrappers: Sequence[Any]) -> None:
        mode = self._cfg["vectorization_mode"]
        if mode not in _MODES:
            raise ConfigError(f"env.manager.vectorization_mode = {mode!r}{nearest(mode, _MODES)}")
        if not has_own_vector(wrappers[0]):
            check_wrappers(wrappers, "gym_vector")
            return
        if mode != "auto":
            raise ConfigError(
                f"env.manager.vectorization_mode = {mode!r}: {type(wrappers[0]).__name__} has a "
                "vector env of its own; leave the key out"
            )
        for i, env in enumerate(wrappers):
            _check_same(wrappers[0]._cfg, env._cfg, "env.manager.type='gym_vector'", i)

    def _make_simulators(self) -> Simulators:
        cfg = self._wrappers[0]._cfg
        if has_own_vector(self._wrappers[0]):
            return own_vector(partial(_own, type(self._wrappers[0]), cfg, self.env_num))
        kwargs = dict(cfg["env_kwargs"])
        if cfg["max_episode_steps"] is not None:
            kwargs["max_episode_steps"] = cfg["max_episode_steps"]
        mode = self._cfg["vectorization_mode"]
        make = partial(make_vector, cfg["env_id"], self.env_num, mode, kwargs)
        return simulators(make, bool(cfg["act_scale"]))

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        save = getattr(self._simulators.vector, "enable_save_replay", None)
        if save is None:
            super().enable_save_replay(replay_path)
        else:
            save(replay_path)


def has_own_vector(env: Any) -> bool:
    """Whether the env's class makes a vector env, and no subclass of it steps otherwise."""
    for kind in type(env).__mro__:
        if "make_vector" in vars(kind):
            return True
        if {"reset", "step"} & set(vars(kind)):
            return False
    return False


def _own(kind: Any, cfg: Mapping[str, Any], count: int, seeds: Seeds | None = None) -> Any:
    return kind.make_vector(cfg, count)


def check_wrappers(wrappers: Sequence[Any], type_: str) -> None:
    """Raise unless the envs are alike and made by id, without anything around them."""
    where = f"env.manager.type='{type_}'"
    for i, env in enumerate(wrappers):
        obstacle = _obstacle(env)
        if obstacle:
            raise DingError(
                f"{where} {obstacle}; use env.manager.type='base' or 'subprocess' for it"
            )
        _check_same(wrappers[0]._cfg, env._cfg, where, i)


def _obstacle(env: Any) -> str | None:
    """Why a vector env cannot stand in for this env."""
    kind = type(env).__name__
    if not isinstance(env, DingEnvWrapper):
        return f"makes its envs by env.env_id and cannot run {kind}"
    for name in _BEHAVIOUR:
        if getattr(type(env), name) is not getattr(DingEnvWrapper, name):
            return f"would never call {kind}.{name}"
    if not env._cfg["env_id"] or env._given is not None or env._factory is not None:
        return "makes its envs by env.env_id, here is another env or factory"
    for key in ("env_wrapper", "replay_path"):
        if env._cfg[key]:
            return f"cannot do env.{key} = {env._cfg[key]!r}"
    return None


def _check_same(first: Mapping[str, Any], own: Mapping[str, Any], where: str, i: int) -> None:
    for key in sorted({*first, *own}):
        ours, theirs = first.get(key), own.get(key)
        if ours != theirs:
            raise DingError(
                f"{where} needs one config for all envs, but env.{key} is {ours!r} for env 0 and "
                f"{theirs!r} for env {i}"
            )


def make_vector(
    env_id: str, count: int, mode: str, kwargs: dict[str, Any], seeds: Seeds | None = None
) -> Any:
    """The vector env of an id; its seeds come with `reset`."""
    module, _, name = env_id.rpartition(":")
    if module:
        import_module(module)
    register_package(name)
    if mode == "auto":
        spec = gym.registry.get(name)
        vectorised = spec is not None and spec.vector_entry_point is not None
        mode = "vector_entry_point" if vectorised else "sync"
    try:
        if mode == "vector_entry_point":
            return gym.make_vec(name, num_envs=count, vectorization_mode=mode, **kwargs)
        fns = [partial(gym.make, name, disable_env_checker=True, **kwargs)] * count
        if mode == "sync":
            return SyncVectorEnv(fns, autoreset_mode=AutoresetMode.DISABLED)
        return AsyncVectorEnv(fns, autoreset_mode=AutoresetMode.DISABLED)
    except gym.error.UnregisteredEnv as error:
        raise DingError(f"unknown env_id '{env_id}'{unknown_id(env_id, gym.registry)}") from error
    except gym.error.DependencyNotInstalled as error:
        raise missing_simulator(name, error) from error
    except (gym.error.Error, TypeError) as error:
        raise DingError(
            f"cannot make {count} envs '{env_id}' with {kwargs} (vectorization_mode='{mode}'): "
            f"{error}"
        ) from error
