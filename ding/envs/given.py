"""Envs that users give: a class, a function, an env, 'module:Class'; of Gymnasium or old Gym."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from ding.utils.errors import DingError

OLD_GYM = "the env has old Gym's reset and step (no info, one 'done'), which are adapted"


def maker_of(given: Any) -> Callable[..., Any] | None:
    """Maker of an env that a config names by something else than a registered id, or None."""
    if isinstance(given, str):
        return _maker_by_place(given)
    if isinstance(given, gym.Env):
        return partial(gym.make, given.spec) if given.spec is not None else partial(deepcopy, given)
    if not callable(given):
        raise DingError(
            f"env_id = {given!r}: give a registered id, 'module:Class', a class, a function that "
            "makes an env, or an env"
        )
    made: Callable[..., Any] = given
    return made


def _maker_by_place(place: str) -> Callable[..., Any] | None:
    """The class or function of 'module:name'; Gymnasium's own 'module:id' is left to it."""
    module, _, name = place.partition(":")
    if not name.isidentifier() or name in gym.registry:
        return None
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise DingError(f"env_id = '{place}': cannot import '{module}': {error}") from error
    if name in gym.registry:
        return None
    if not callable(found):
        raise DingError(f"env_id = '{place}': module '{module}' has no class or function '{name}'")
    made: Callable[..., Any] = found
    return made


def in_gymnasium(env: Any) -> Any:
    """The env, or an adapter around an env of old Gym, below the wrappers that it has."""
    if not isinstance(env, gym.Env):
        return OldGymEnv(env) if _plays(env) else env
    if not _is_old(env.unwrapped):
        return env
    if env.unwrapped is env:
        return OldGymEnv(env)
    inner: Any = env
    while isinstance(inner.env, gym.Wrapper):
        inner = inner.env
    inner.env = OldGymEnv(inner.env)
    return env


def is_adapted(env: Any) -> bool:
    return isinstance(getattr(env, "unwrapped", None), OldGymEnv)


def _plays(env: Any) -> bool:
    return all(hasattr(env, name) for name in ("reset", "step", "action_space"))


def _is_old(env: Any) -> bool:
    """Whether `reset` takes no seed, as it did before Gymnasium."""
    if isinstance(env, OldGymEnv):
        return False
    taken = inspect.signature(env.reset).parameters.values()
    return not any(p.name == "seed" or p.kind is p.VAR_KEYWORD for p in taken)


class OldGymEnv(gym.Env[Any, Any]):
    """`reset() -> obs` and `step -> (obs, reward, done, info)` as Gymnasium has them."""

    def __init__(self, env: Any) -> None:
        self.old = env
        self.observation_space = _space_of(env.observation_space)
        self.action_space = _space_of(env.action_space)
        self.render_mode = getattr(env, "render_mode", None)
        self.metadata = dict(getattr(env, "metadata", {}))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None and hasattr(self.old, "seed"):
            self.old.seed(seed)
        first = self.old.reset()
        return first if _is_with_info(first) else (first, {})

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        given = self.old.step(action)
        if len(given) == 5:
            return given
        obs, reward, done, info = given
        truncated = bool(info.get("TimeLimit.truncated", False))
        return obs, reward, bool(done) and not truncated, truncated, info

    def render(self) -> Any:
        return self.old.render()

    def close(self) -> None:
        if hasattr(self.old, "close"):
            self.old.close()


def _is_with_info(first: Any) -> bool:
    return isinstance(first, tuple) and len(first) == 2 and isinstance(first[1], dict)


def _space_of(space: Any) -> gym.Space[Any]:
    """A space of old Gym as Gymnasium's."""
    if isinstance(space, gym.Space):
        return space
    kind = type(space).__name__
    if kind == "Box":
        return spaces.Box(space.low, space.high, dtype=space.dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(int(space.n), start=int(getattr(space, "start", 0)))
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(space.nvec)
    if kind == "MultiBinary":
        return spaces.MultiBinary(space.n)
    if kind == "Dict" and isinstance(space.spaces, Mapping):
        return spaces.Dict({key: _space_of(part) for key, part in space.spaces.items()})
    if kind == "Tuple":
        return spaces.Tuple([_space_of(part) for part in space.spaces])
    raise DingError(f"{space!r} is no space of Gymnasium: use those of gymnasium.spaces")


def checked_reset(env: Any, first: Any) -> tuple[Any, Any]:
    """Result of `reset`, if that is an observation and an info."""
    if not _is_with_info(first):
        raise DingError(
            f"reset of {env} must return (obs, info), it gave a {type(first).__name__}; old Gym's "
            "reset takes no seed and is adapted then"
        )
    return first[0], first[1]
