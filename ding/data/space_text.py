"""Spaces as JSON and back; nothing is imported or called while reading."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from gymnasium import Space, spaces


def space_to_text(space: Space[Any]) -> str:
    """JSON of a space whose samples have a fixed shape."""
    return json.dumps(_plain(space))


def space_from_text(text: str) -> Space[Any]:
    """The space that `space_to_text` wrote; ValueError or KeyError for anything else."""
    return _space(json.loads(text))


def _plain(space: Space[Any]) -> dict[str, Any]:
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "parts": {key: _plain(part) for key, part in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"kind": "Tuple", "parts": [_plain(part) for part in space.spaces]}
    leaf: dict[str, Any] = {"dtype": str(space.dtype)}
    if isinstance(space, spaces.Box):
        bounds = {"low": _bound(space.low), "high": _bound(space.high)}
        return {"kind": "Box", **leaf, "shape": list(space.shape), **bounds}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", **leaf, "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        numbers = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"kind": "MultiDiscrete", **leaf, **numbers}
    if isinstance(space, spaces.MultiBinary):
        n: Any = space.n  # A number or a shape, and spaces that differ so are not equal.
        return {"kind": "MultiBinary", "n": int(n) if np.ndim(n) == 0 else [int(k) for k in n]}
    raise ValueError(f"a {type(space).__name__} space has no fixed shape")


def _bound(bound: np.ndarray) -> Any:
    """One number if all are the same; text since JSON knows no infinity and float32 no decimals."""
    flat = bound.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return repr(flat[0].item())
    return [repr(x) for x in flat.tolist()]


def _array(given: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    numbers = [float(x) if dtype.kind == "f" else int(x) for x in np.atleast_1d(given)]
    values = np.array(numbers, dtype=dtype)
    return np.broadcast_to(values, shape) if values.size == 1 else values.reshape(shape)


def _space(plain: Any) -> Space[Any]:
    kind = plain["kind"]
    if kind == "Dict":
        return spaces.Dict({key: _space(part) for key, part in plain["parts"].items()})
    if kind == "Tuple":
        return spaces.Tuple([_space(part) for part in plain["parts"]])
    if kind == "MultiBinary":
        return spaces.MultiBinary(plain["n"])
    dtype = np.dtype(plain["dtype"])
    if kind == "Box":
        shape = tuple(int(n) for n in plain["shape"])
        low, high = (_array(plain[end], shape, dtype) for end in ("low", "high"))
        return spaces.Box(low, high, shape, dtype=dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(int(plain["n"]), start=int(plain["start"]), dtype=dtype.type)
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(plain["nvec"], start=plain["start"], dtype=dtype.type)
    raise ValueError(f"'{kind}' is no kind of space")
