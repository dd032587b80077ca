"""Values as plain JSON and back: numbers, text, containers, arrays, and classes by their name.

Nothing is imported or called while reading; a class comes back through the caller's `resolve`.
"""

from __future__ import annotations

import base64
import binascii
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from easydict import EasyDict

_TAGS = ("__array__", "__objects__", "__tuple__", "__items__", "__easydict__", "__name__")


class NotPlainError(ValueError):
    """A value that has no plain form, or a text that is none."""


def to_plain(value: Any, *, names: bool = False) -> Any:
    """What `json.dumps` takes as it is; with `names` classes and functions become their names."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_array(np.asarray(value), names)
    if isinstance(value, list):
        return [to_plain(one, names=names) for one in value]
    if isinstance(value, tuple):
        return {"__tuple__": [to_plain(one, names=names) for one in value]}
    if isinstance(value, EasyDict):  # Its nested dicts become such again by themselves.
        return {"__easydict__": _from_dict(value, names)}
    if isinstance(value, dict):
        return _from_dict(value, names)
    if names and callable(value):
        return {"__name__": name_of(value)}
    raise NotPlainError(f"{type(value).__name__} is no plain data")


def _from_dict(value: dict[Any, Any], names: bool) -> Any:
    items = [(key, to_plain(one, names=names)) for key, one in value.items()]
    if all(type(key) is str and key not in _TAGS for key, _ in items):
        return dict(items)
    return {"__items__": [[to_plain(key, names=names), one] for key, one in items]}


def _from_array(array: np.ndarray, names: bool) -> dict[str, Any]:
    if array.dtype == object and array.ndim == 1:
        return {"__objects__": [to_plain(one, names=names) for one in array]}
    if array.dtype.kind not in "biufc":
        raise NotPlainError(f"an array of {array.dtype} is no plain data")
    code = base64.b64encode(array.tobytes()).decode()
    return {"__array__": code, "dtype": array.dtype.str, "shape": list(array.shape)}


def name_of(item: Any) -> str:
    """`module:qualified.name` of a class or function that can be imported by it."""
    module, name = getattr(item, "__module__", None), getattr(item, "__qualname__", None)
    found: Any = sys.modules.get(module) if module and module != "__main__" else None
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    if found is None or found is not item:
        raise NotPlainError(f"{item!r} cannot be imported by name")
    return f"{module}:{name}"


def _refuse(name: str) -> Any:
    raise NotPlainError(f"the name '{name}' stands where only plain data may")


def from_plain(plain: Any, resolve: Callable[[str], Any] = _refuse) -> Any:
    """The inverse of `to_plain`."""
    if isinstance(plain, list):
        return [from_plain(one, resolve) for one in plain]
    if not isinstance(plain, dict):
        return plain
    tag = next((tag for tag in _TAGS if tag in plain), None)
    if tag is None:
        return {key: from_plain(one, resolve) for key, one in plain.items()}
    return _from_tagged(tag, plain, resolve)


def _from_tagged(tag: str, plain: dict[str, Any], resolve: Callable[[str], Any]) -> Any:
    content = plain[tag]
    if tag == "__array__":
        return _to_array(plain)
    if not isinstance(content, {"__name__": str, "__easydict__": dict}.get(tag, list)):
        raise NotPlainError(f"{tag} holds a {type(content).__name__}")
    if tag == "__name__":
        return resolve(content)
    inner = from_plain(content, resolve)
    if tag == "__tuple__":
        return tuple(inner)
    if tag == "__easydict__":
        return EasyDict(inner)
    if tag == "__items__":
        return _to_dict(inner)
    column = np.empty(len(inner), dtype=object)
    column[:] = inner
    return column


def _to_dict(pairs: list[Any]) -> dict[Any, Any]:
    try:
        return dict(pairs)
    except (TypeError, ValueError) as error:
        raise NotPlainError(f"a dict is damaged: {error}") from error


def _to_array(plain: dict[str, Any]) -> np.ndarray:
    try:
        dtype, shape = np.dtype(plain["dtype"]), [int(n) for n in plain["shape"]]
        raw = base64.b64decode(plain["__array__"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise NotPlainError(f"an array is damaged: {error}") from error
    fits = min(shape, default=0) >= 0 and len(raw) == math.prod(shape) * dtype.itemsize
    if dtype.kind not in "biufc" or not fits:
        raise NotPlainError(f"an array of {dtype} and shape {shape} has {len(raw)} bytes")
    return np.frombuffer(raw, dtype).reshape(shape).copy()
