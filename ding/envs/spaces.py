"""The spaces that policies see: float32 observations, actions from 0 on or in [-1, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import Space, spaces

from ding.envs.agents import AgentsSpace
from ding.utils.batch import tree_map
from ding.utils.errors import DingError

_FLOAT64 = np.dtype(np.float64)
GOAL_KEYS = {"observation", "achieved_goal", "desired_goal"}
"""Parts of an observation by Gymnasium's convention of goals."""
_LEAVES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, AgentsSpace)


def has_goals(space: Any) -> bool:
    return isinstance(space, spaces.Dict) and set(space) >= GOAL_KEYS


def check_supported(space: Space[Any], where: str) -> None:
    """Raise for spaces whose samples have no fixed shape."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            check_supported(part, f"{where}[{key!r}]")
    elif isinstance(space, spaces.Tuple):
        for i, part in enumerate(space.spaces):
            check_supported(part, f"{where}[{i}]")
    elif not isinstance(space, _LEAVES):
        raise DingError(
            f"{where} is a {type(space).__name__} space, which is not supported (Box, Discrete, "
            "MultiDiscrete, MultiBinary, Dict and Tuple are): convert it with an env wrapper"
        )


def narrow_space(space: Space[Any]) -> Space[Any]:
    """The space of `narrow(obs)`: float64 boxes become float32."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: narrow_space(part) for key, part in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple([narrow_space(part) for part in space.spaces])
    if isinstance(space, spaces.Box) and space.dtype == _FLOAT64:
        limit = np.finfo(np.float32).max
        low, high = (
            np.where(np.isinf(b), b, b.clip(-limit, limit)) for b in (space.low, space.high)
        )
        return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
    return space


def narrow(obs: Any) -> Any:
    """Observations as arrays, float64 as float32; other dtypes stay."""
    return tree_map(_narrow_leaf, obs)


def _narrow_leaf(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype == _FLOAT64 else array


class QuickDiscrete(spaces.Discrete):
    """`Discrete` that answers for a plain int at once: many envs ask `contains` at every step."""

    def __init__(self, space: spaces.Discrete) -> None:
        super().__init__(int(space.n), start=int(space.start), dtype=space.dtype.type)
        self._range = range(int(space.start), int(space.start) + int(space.n))

    def contains(self, x: Any) -> bool:
        return x in self._range if type(x) is int else super().contains(x)


class ActionMap:
    """Turns an action of the `presented` space into one of the simulator's."""

    presented: Space[Any]

    def __call__(self, action: Any) -> Any:
        raise NotImplementedError


class DiscreteAction(ActionMap):
    """Presented from 0, whatever the simulator starts at."""

    def __init__(self, space: spaces.Discrete) -> None:
        self.presented = spaces.Discrete(int(space.n))
        self.start = int(space.start)

    def __call__(self, action: Any) -> int:
        # Not int(): numbers, arrays and tensors of one element all have item().
        return (action if isinstance(action, int) else action.item()) + self.start


class MultiDiscreteAction(ActionMap):
    def __init__(self, space: spaces.MultiDiscrete) -> None:
        self.presented = spaces.MultiDiscrete(space.nvec, dtype=space.dtype.type)
        self.start = space.start

    def __call__(self, action: Any) -> np.ndarray:
        return np.asarray(action, dtype=self.presented.dtype) + self.start


class PlainAction(ActionMap):
    """Only the dtype is made to fit."""

    def __init__(self, space: Space[Any]) -> None:
        self.presented = space

    def __call__(self, action: Any) -> np.ndarray:
        return np.asarray(action, dtype=self.presented.dtype)


class ScaledAction(ActionMap):
    """Presented in [-1, 1]; what lies beyond is clipped."""

    def __init__(self, space: spaces.Box) -> None:
        self.presented = spaces.Box(-1.0, 1.0, space.shape, dtype=np.float32)
        # Halved first: the width of a box may overflow its dtype.
        self.half = space.high / 2 - space.low / 2
        self.middle = space.high / 2 + space.low / 2
        self.dtype = space.dtype
        self.floor = np.full(space.shape, -1, dtype=space.dtype)
        self.top = np.full(space.shape, 1, dtype=space.dtype)

    def __call__(self, action: Any) -> np.ndarray:
        # np.clip takes twice as long on the few numbers of an action; NaN goes through both.
        array = np.asarray(action, dtype=self.dtype)
        clipped = np.minimum(np.maximum(array, self.floor), self.top)
        return clipped * self.half + self.middle


class NestedAction(ActionMap):
    """Dict and Tuple actions, part by part."""

    def __init__(self, space: spaces.Dict | spaces.Tuple, scale: bool) -> None:
        self.parts: dict[str, ActionMap] | tuple[ActionMap, ...]
        if isinstance(space, spaces.Dict):
            self.parts = {key: action_map(part, scale) for key, part in space.spaces.items()}
            self.presented = spaces.Dict({key: part.presented for key, part in self.parts.items()})
        else:
            self.parts = tuple(action_map(part, scale) for part in space.spaces)
            self.presented = spaces.Tuple([part.presented for part in self.parts])

    def __call__(self, action: Any) -> Any:
        if isinstance(self.parts, dict):
            return {key: part(action[key]) for key, part in self.parts.items()}
        return tuple(part(a) for part, a in zip(self.parts, action, strict=True))


class AgentsAction(ActionMap):
    """Numbers of all agents at once: bounds of one are those of each."""

    def __init__(self, space: AgentsSpace, scale: bool) -> None:
        self.one = action_map(space.one, scale)
        self.presented = AgentsSpace(self.one.presented, space.agent_num)

    def __call__(self, action: Any) -> Any:
        return self.one(action)


def action_map(space: Space[Any], scale: bool) -> ActionMap:
    """How to present `space`; with `scale`, bounded float boxes as [-1, 1]."""
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return NestedAction(space, scale)
    if isinstance(space, AgentsSpace) and isinstance(space.one, spaces.Box):
        return AgentsAction(space, scale)
    if isinstance(space, spaces.Discrete):
        return DiscreteAction(space)
    if isinstance(space, spaces.MultiDiscrete):
        return MultiDiscreteAction(space)
    is_float_box = isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
    if scale and isinstance(space, spaces.Box) and is_float_box and space.is_bounded():
        return ScaledAction(space)
    return PlainAction(space)
