"""Spaces as plain JSON and back, and observations held against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from ding.envs.agents import AgentsSpace
from ding.envs.obs_map import has_numbers
from ding.utils.batch import objects
from ding.utils.errors import CheckpointError, DingError
from ding.utils.plain import NotPlainError, from_plain, to_plain


class Unseen(Space[Any]):
    """A part of observations that policies do not see; of what kind it is does not matter."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def contains(self, x: Any) -> bool:
        return True

    def __repr__(self) -> str:
        return self.name


def plain_space(space: Space[Any]) -> dict[str, Any]:
    """A description of the space that `json.dumps` takes."""
    if isinstance(space, spaces.Dict):
        parts = {key: plain_space(part) for key, part in space.spaces.items()}
        return {"kind": "Dict", "parts": parts}
    if isinstance(space, spaces.Tuple):
        return {"kind": "Tuple", "parts": [plain_space(part) for part in space.spaces]}
    if isinstance(space, spaces.Box):
        low, high = to_plain(space.low), to_plain(space.high)
        return {"kind": "Box", "low": low, "high": high, "dtype": space.dtype.str}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        nvec, start = to_plain(space.nvec), to_plain(space.start)
        return {"kind": "MultiDiscrete", "nvec": nvec, "start": start, "dtype": space.dtype.str}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "MultiBinary", "n": to_plain(space.n)}
    if isinstance(space, AgentsSpace):
        return {"kind": "Agents", "one": plain_space(space.one), "agent_num": space.agent_num}
    return {"kind": "Unseen", "name": repr(space)}


def space_of(plain: Mapping[str, Any]) -> Space[Any]:
    """The inverse of `plain_space`."""
    try:
        return _BY_KIND[plain["kind"]](plain)
    except (KeyError, TypeError, ValueError, AssertionError, NotPlainError) as error:
        raise CheckpointError(f"the description of a space is damaged: {error!r}") from error


def _dict(plain: Mapping[str, Any]) -> Space[Any]:
    return spaces.Dict({key: space_of(part) for key, part in plain["parts"].items()})


def _tuple(plain: Mapping[str, Any]) -> Space[Any]:
    return spaces.Tuple([space_of(part) for part in plain["parts"]])


def _box(plain: Mapping[str, Any]) -> Space[Any]:
    low, high = from_plain(plain["low"]), from_plain(plain["high"])
    return spaces.Box(low, high, dtype=np.dtype(plain["dtype"]).type)


def _discrete(plain: Mapping[str, Any]) -> Space[Any]:
    return spaces.Discrete(plain["n"], start=plain["start"])


def _multi_discrete(plain: Mapping[str, Any]) -> Space[Any]:
    nvec, start = from_plain(plain["nvec"]), from_plain(plain["start"])
    return spaces.MultiDiscrete(nvec, dtype=np.dtype(plain["dtype"]).type, start=start)


def _multi_binary(plain: Mapping[str, Any]) -> Space[Any]:
    return spaces.MultiBinary(from_plain(plain["n"]))


def _agents(plain: Mapping[str, Any]) -> Space[Any]:
    return AgentsSpace(space_of(plain["one"]), plain["agent_num"])


def _unseen(plain: Mapping[str, Any]) -> Space[Any]:
    return Unseen(str(plain["name"]))


_BY_KIND = {
    "Unseen": _unseen,
    "Agents": _agents,
    "Dict": _dict,
    "Tuple": _tuple,
    "Box": _box,
    "Discrete": _discrete,
    "MultiDiscrete": _multi_discrete,
    "MultiBinary": _multi_binary,
}


def arrays_of(obs: Any, space: Space[Any], where: str = "the observation") -> Any:
    """An observation, or a batch of them, in arrays; refuses what the space cannot be of."""
    if isinstance(space, spaces.Dict):
        if not isinstance(obs, Mapping) or set(obs) != set(space.spaces):
            found = sorted(obs) if isinstance(obs, Mapping) else type(obs).__name__
            raise DingError(f"{where} must have the parts {sorted(space.spaces)}, got {found}")
        return {k: arrays_of(obs[k], part, f"{where}[{k!r}]") for k, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        if not isinstance(obs, (tuple, list)) or len(obs) != len(space.spaces):
            raise DingError(f"{where} must be a tuple of {len(space.spaces)} parts")
        pairs = enumerate(zip(obs, space.spaces, strict=True))
        return tuple(arrays_of(one, part, f"{where}[{i}]") for i, (one, part) in pairs)
    if not has_numbers(space):
        return _unseen_parts(obs)
    array = obs if isinstance(obs, np.ndarray) else _array(obs, space)
    shape = space.shape or ()
    if array.shape != shape and array.shape[1:] != shape:
        raise DingError(
            f"{where} has shape {array.shape}, but the agent was trained on {shape}, "
            f"or {('N', *shape)} as a batch".replace("'N'", "N")
        )
    if array.dtype.kind not in "biuf":
        raise DingError(f"{where} must be numbers, got an array of {array.dtype}")
    return array


def _unseen_parts(obs: Any) -> np.ndarray:
    """Words and the like as an array of objects; a list or an array is a batch of them."""
    if isinstance(obs, (list, np.ndarray)):
        return objects(obs)  # type: ignore[arg-type]
    part = np.empty((), dtype=object)
    part[()] = obs
    return part


def _array(obs: Any, space: Space[Any]) -> np.ndarray:
    """Lists, numbers and tensors in the dtype of the space."""
    try:
        array = obs.detach().cpu().numpy() if hasattr(obs, "detach") else np.asarray(obs)
        return array.astype(space.dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise DingError(f"an observation must be numbers, got {type(obs).__name__}") from error


def is_batch(obs: Any, space: Space[Any]) -> bool:
    """Whether an observation in arrays has an axis of rows in front."""
    while isinstance(space, (spaces.Dict, spaces.Tuple)):
        inner = space.spaces
        named = inner.items() if isinstance(inner, dict) else enumerate(inner)
        key, space = next((key, part) for key, part in named if has_numbers(part))
        obs = obs[key]
    return bool(obs.ndim > len(space.shape or ()))
