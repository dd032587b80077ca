"""The spaces that policies see: float32 observations, actions from 0 on or in [-1, 1].

`obs_map.py` has what becomes of observations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
from gymnasium import Space, spaces

from ding.envs.agents import AgentsSpace
from ding.utils.batch import tree_map
from ding.utils.errors import DingError

HYBRID_KEYS = {"action_type", "action_args"}
MOST_CHOICES = 4096
"""Most outputs of a network for a box of whole numbers."""
_FLOAT64 = np.dtype(np.float64)
GOAL_KEYS = {"observation", "achieved_goal", "desired_goal"}
"""Parts of an observation by Gymnasium's convention of goals."""
LEAVES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, AgentsSpace)


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
    elif not isinstance(space, LEAVES):
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
    return tree_map(narrow_leaf, obs)


def narrow_leaf(value: Any) -> Any:
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
    shape: tuple[int, ...] | None = None
    """Of the simulator's actions, where it is not that of the presented ones, which are vectors."""

    def __call__(self, action: Any) -> Any:
        raise NotImplementedError

    def shaped(self, action: Any) -> Any:
        """Arrays or tensors with the simulator's axes; those in front of them stay."""
        return action if self.shape is None else action.reshape((*action.shape[:-1], *self.shape))


def _shape_unless_flat(space: Space[Any]) -> tuple[int, ...] | None:
    shape = space.shape or ()
    return None if len(shape) == 1 else shape


class DiscreteAction(ActionMap):
    """Presented from 0, whatever the simulator starts at."""

    def __init__(self, space: spaces.Discrete) -> None:
        self.presented = spaces.Discrete(int(space.n))
        self.start = int(space.start)

    def __call__(self, action: Any) -> int:
        # Not int(): numbers, arrays and tensors of one element all have item().
        return (action if isinstance(action, int) else action.item()) + self.start


class MultiDiscreteAction(ActionMap):
    """Several discrete actions, each from 0 on; bits are actions of two."""

    def __init__(self, space: spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box) -> None:
        nvec, start = _ranges(space)
        self.presented = spaces.MultiDiscrete(nvec.reshape(-1))
        self.start, self.dtype = start.reshape(-1), space.dtype
        self.shape = _shape_unless_flat(space)

    def __call__(self, action: Any) -> np.ndarray:
        shifted = np.asarray(action, dtype=self.presented.dtype) + self.start
        return self.shaped(shifted.astype(self.dtype, copy=False))


def _ranges(
    space: spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box,
) -> tuple[np.ndarray, np.ndarray]:
    """How many values each number has, and its least one."""
    if isinstance(space, spaces.MultiBinary):
        return np.full(space.shape, 2), np.zeros(space.shape, dtype=np.int64)
    if isinstance(space, spaces.Box):
        low, high = space.low.astype(np.int64), space.high.astype(np.int64)
        return high - low + 1, low
    return space.nvec, np.asarray(space.start)


class PlainAction(ActionMap):
    """Only dtype and axes are made to fit."""

    def __init__(self, space: Space[Any]) -> None:
        self.presented, self.dtype = space, space.dtype
        if isinstance(space, spaces.Box) and len(space.shape) != 1:
            self.shape = space.shape
            low, high = space.low.reshape(-1), space.high.reshape(-1)
            self.presented = spaces.Box(low, high, dtype=space.dtype.type)

    def __call__(self, action: Any) -> np.ndarray:
        return self.shaped(np.asarray(action, dtype=self.dtype))


class ScaledAction(ActionMap):
    """Presented in [-1, 1]; what lies beyond is clipped."""

    def __init__(self, space: spaces.Box) -> None:
        self.shape = _shape_unless_flat(space)
        low, high = space.low.reshape(-1), space.high.reshape(-1)
        self.presented = spaces.Box(-1.0, 1.0, low.shape, dtype=np.float32)
        # Halved first: the width of a box may overflow its dtype.
        self.half = high / 2 - low / 2
        self.middle = high / 2 + low / 2
        self.dtype = space.dtype
        self.floor = np.full(low.shape, -1, dtype=space.dtype)
        self.top = np.full(low.shape, 1, dtype=space.dtype)

    def __call__(self, action: Any) -> np.ndarray:
        # np.clip takes twice as long on the few numbers of an action; NaN goes through both.
        array = np.asarray(action, dtype=self.dtype)
        clipped = np.minimum(np.maximum(array, self.floor), self.top)
        scaled = clipped * self.half + self.middle
        return scaled if self.shape is None else self.shaped(scaled)


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

    def named(self, parts: Sequence[Any]) -> Any:
        """Parts of an action, in order, as they are nested."""
        keys = self.parts
        return dict(zip(keys, parts, strict=True)) if isinstance(keys, dict) else tuple(parts)

    @property
    def presented_parts(self) -> list[Space[Any]]:
        parts = self.parts.values() if isinstance(self.parts, dict) else self.parts
        return [part.presented for part in parts]


class RegroupedAction(ActionMap):
    """A nested action that is presented as another kind, which policies know."""

    def __init__(self, nested: NestedAction) -> None:
        self.nested = nested

    def split(self, action: Any) -> Any:
        """The presented parts of the nested action, of arrays or tensors."""
        raise NotImplementedError

    def __call__(self, action: Any) -> Any:
        return self.nested(self.split(tree_map(np.asarray, action)))


class JoinedAction(RegroupedAction):
    """Parts of one kind, one after the other: as several discrete actions, or as one vector."""

    def __init__(self, nested: NestedAction) -> None:
        super().__init__(nested)
        parts = nested.presented_parts
        self.sizes = [1 if isinstance(p, spaces.Discrete) else math.prod(p.shape) for p in parts]  # type: ignore[arg-type]
        self.is_number = [isinstance(part, spaces.Discrete) for part in parts]
        self.presented = _joined(parts)

    def split(self, action: Any) -> Any:
        parts, at = [], 0
        for size, is_number in zip(self.sizes, self.is_number, strict=True):
            parts.append(action[..., at] if is_number else action[..., at : at + size])
            at += size
        return self.nested.named(parts)


def _joined(parts: Sequence[Space[Any]]) -> Space[Any]:
    boxes = [part for part in parts if isinstance(part, spaces.Box)]
    if boxes:
        low, high = (np.concatenate([getattr(b, side) for b in boxes]) for side in ("low", "high"))
        return spaces.Box(low, high, dtype=low.dtype.type)
    nvec = [p.nvec if isinstance(p, spaces.MultiDiscrete) else [p.n] for p in parts]  # type: ignore[attr-defined]
    return spaces.MultiDiscrete(np.concatenate(nvec))


class HybridAction(RegroupedAction):
    """A discrete part and a vector, presented as {'action_type', 'action_args'}."""

    def __init__(self, nested: NestedAction) -> None:
        super().__init__(nested)
        parts = nested.presented_parts
        self.number_first = isinstance(parts[0], spaces.Discrete)
        number, args = parts if self.number_first else parts[::-1]
        self.presented = spaces.Dict(action_type=number, action_args=args)

    def split(self, action: Any) -> Any:
        parts = [action["action_type"], action["action_args"]]
        return self.nested.named(parts if self.number_first else parts[::-1])


def _nested_map(space: spaces.Dict | spaces.Tuple, scale: bool) -> ActionMap:
    """Parts side by side, or as a kind that more policies can act in."""
    nested = NestedAction(space, scale)
    if isinstance(space, spaces.Dict) and set(space) == HYBRID_KEYS:
        return nested
    kinds = [type(part) for part in nested.presented_parts]
    if kinds and set(kinds) <= {spaces.Discrete, spaces.MultiDiscrete}:
        return JoinedAction(nested)
    if kinds and set(kinds) == {spaces.Box}:
        return JoinedAction(nested)
    if sorted(kind.__name__ for kind in kinds) == ["Box", "Discrete"]:
        return HybridAction(nested)
    return nested


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
        return _nested_map(space, scale)
    if isinstance(space, AgentsSpace) and isinstance(space.one, spaces.Box):
        return AgentsAction(space, scale)
    if isinstance(space, spaces.Discrete):
        return DiscreteAction(space)
    if isinstance(space, (spaces.MultiDiscrete, spaces.MultiBinary)) or _is_choice(space):
        return MultiDiscreteAction(space)
    is_float_box = isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)
    if scale and isinstance(space, spaces.Box) and is_float_box and space.is_bounded():
        return ScaledAction(space)
    return PlainAction(space)


def _is_choice(space: Space[Any]) -> TypeGuard[spaces.Box]:
    """Whether a box is of whole numbers, few enough to choose among them."""
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.integer):
        return False
    return space.is_bounded() and int(_ranges(space)[0].sum()) <= MOST_CHOICES
