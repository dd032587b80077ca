"""Observations as policies see them: arrays of numbers, images with their channels first.

A map takes one observation or many: every axis in front of those of the space is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from ding.envs.spaces import LEAVES, has_goals, narrow, narrow_leaf, narrow_space
from ding.utils.errors import DingError

SMALLEST_IMAGE = 16
"""Fewest pixels a side of what counts as an image."""
_CHANNELS = (1, 3, 4)
_GOALS = {"achieved_goal", "desired_goal"}
_PAST = {"prev_action", "prev_reward_extrinsic"}


class ObsMap:
    """Turns an observation of the env into one of the `presented` space."""

    presented: Space[Any]
    notes: tuple[str, ...] = ()
    """What people should know of the change, one line each."""

    def __call__(self, obs: Any) -> Any:
        raise NotImplementedError


class PlainObs(ObsMap):
    """Only float64 becomes float32."""

    def __init__(self, space: Space[Any]) -> None:
        self.presented = narrow_space(space)

    def __call__(self, obs: Any) -> Any:
        return narrow(obs)


class ScalarObs(ObsMap):
    """A number without axes as a vector of one."""

    def __init__(self, space: spaces.Box) -> None:
        box = narrow_space(space)
        assert isinstance(box, spaces.Box)
        low, high = box.low.reshape(1), box.high.reshape(1)
        self.presented = spaces.Box(low, high, dtype=box.dtype.type)

    def __call__(self, obs: Any) -> Any:
        return narrow_leaf(obs)[..., None]


class OneHotObs(ObsMap):
    """Whole numbers as one-hot vectors, one after the other."""

    def __init__(self, space: spaces.Discrete | spaces.MultiDiscrete) -> None:
        nvec = space.nvec if isinstance(space, spaces.MultiDiscrete) else np.array([space.n])
        self.space, self.n_axis = space, len(space.shape or ())
        self.start = np.asarray(space.start).reshape(-1)
        self.nvec = nvec.reshape(-1).astype(np.int64)
        self.offset = np.cumsum(self.nvec) - self.nvec
        self.total = int(self.nvec.sum())
        self.presented = spaces.Box(0, 1, (self.total,), dtype=np.float32)

    def __call__(self, obs: Any) -> np.ndarray:
        given = np.asarray(obs)
        lead = given.shape[: given.ndim - self.n_axis]
        index = given.reshape(-1, len(self.nvec)) - self.start
        if (index < 0).any() or (index >= self.nvec).any():
            raise DingError(f"the observation {obs!r} lies outside its space {self.space}")
        hot = np.zeros((len(index), self.total), dtype=np.float32)
        hot[np.arange(len(index))[:, None], index + self.offset] = 1
        return hot.reshape(*lead, self.total)


class FloatObs(ObsMap):
    """Bits as floats."""

    def __init__(self, space: spaces.MultiBinary) -> None:
        self.presented = spaces.Box(0, 1, space.shape, dtype=np.float32)

    def __call__(self, obs: Any) -> np.ndarray:
        return np.asarray(obs, dtype=np.float32)


class ImageObs(ObsMap):
    """(H, W, C) as (C, H, W); of K frames (K, H, W, C) as (K * C, H, W)."""

    def __init__(self, space: spaces.Box, where: str) -> None:
        self.n_frame_axis = len(space.shape) - 3
        self.presented = spaces.Box(self(space.low), self(space.high), dtype=self._dtype(space))
        shape = self.presented.shape
        self.notes = (f"{where}: images {space.shape} become {shape}, channels first",)

    @staticmethod
    def _dtype(space: spaces.Box) -> Any:
        return np.float32 if space.dtype == np.float64 else space.dtype.type

    def __call__(self, obs: Any) -> np.ndarray:
        image = np.moveaxis(narrow_leaf(obs), -1, -3)
        if not self.n_frame_axis:
            return image
        *lead, frames, channels, height, width = image.shape
        return image.reshape(*lead, frames * channels, height, width)


class DictObs(ObsMap):
    """Dicts part by part; tuples as dicts with the keys '0', '1' and so on."""

    def __init__(self, space: spaces.Dict | spaces.Tuple, where: str) -> None:
        self.of_tuple = isinstance(space, spaces.Tuple)
        named = _named(space)
        kept = _kept_as_they_are(space)
        self.left_out = {key for key, part in named.items() if not has_numbers(part)}
        self.parts: dict[str, ObsMap] = {
            key: PlainObs(part) if key in kept else obs_map(part, f"{where}[{key!r}]")
            for key, part in named.items()
            if key not in self.left_out
        }
        self.presented = spaces.Dict({key: part.presented for key, part in self.parts.items()})
        self.notes = tuple(note for part in self.parts.values() for note in part.notes) + tuple(
            f"{where}[{key!r}] ({type(named[key]).__name__}) has no numbers and is left out"
            for key in sorted(self.left_out)
        )

    def __call__(self, obs: Any) -> Any:
        if self.of_tuple and isinstance(obs, (tuple, list)):
            obs = {str(i): part for i, part in enumerate(obs)}
        if not isinstance(obs, Mapping):
            return narrow(obs)  # whoever puts rows together says what is wrong
        return {
            key: self.parts[key](part) if key in self.parts else narrow(part)
            for key, part in obs.items()
            if key not in self.left_out
        }


def _named(space: spaces.Dict | spaces.Tuple) -> dict[str, Space[Any]]:
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return {str(i): part for i, part in enumerate(space.spaces)}


def _kept_as_they_are(space: Space[Any]) -> set[str]:
    """Parts that are not for an encoder: masks, goals that rewards are computed from, the past."""
    if not isinstance(space, spaces.Dict):
        return set()
    past = _PAST if set(space) == {"obs", *_PAST} else set()
    return {"action_mask"} | (_GOALS if has_goals(space) else set()) | past


def has_numbers(space: Space[Any]) -> bool:
    """Whether samples are numbers of a fixed shape; of dicts and tuples one part is enough."""
    if isinstance(space, spaces.Dict):
        return any(map(has_numbers, space.spaces.values()))
    if isinstance(space, spaces.Tuple):
        return any(map(has_numbers, space.spaces))
    return isinstance(space, LEAVES)


def is_image_last(space: spaces.Box) -> bool:
    """Whether arrays are images with their channels last, or stacks of such."""
    if len(space.shape) not in (3, 4) or space.shape[-1] not in _CHANNELS:
        return False
    return min(space.shape[-3:-1]) >= SMALLEST_IMAGE


def obs_map(space: Space[Any], where: str = "observation") -> ObsMap:
    """How policies are to see observations of this space."""
    if not has_numbers(space):
        raise DingError(
            f"{where} is a {type(space).__name__} space, which is not supported (Box, Discrete, "
            "MultiDiscrete, MultiBinary, Dict and Tuple are): convert it with an env wrapper"
        )
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return DictObs(space, where)
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        return OneHotObs(space)
    if isinstance(space, spaces.MultiBinary):
        return FloatObs(space)
    if isinstance(space, spaces.Box) and is_image_last(space):
        return ImageObs(space, where)
    if isinstance(space, spaces.Box) and not space.shape:
        return ScalarObs(space)
    return PlainObs(space)
