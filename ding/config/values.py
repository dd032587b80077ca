"""Values of a config: whether they fit a type, or a default that serves as an example of one.

Conversion itself is msgspec's, in its strict mode: no numbers from strings, no bool for an int.
"""

from __future__ import annotations

import os
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin

import msgspec


class Misfit(Exception):  # noqa: N818  (a signal between two functions, never seen by a user)
    """The value does not fit the type."""


def fit(value: Any, hint: Any) -> Any:
    """The value as the hint wants it: `1e5` for an int is `100000`, a list for a tuple a tuple."""
    # The arm of the very same type goes first, so that 1 stays an int in `float | int`. One arm at
    # a time, since msgspec takes no unions of two sequences or of two classes.
    kind: Any = type(value)
    arms = sorted(arms_of(hint), key=lambda arm: kind is not (get_origin(arm) or arm))
    for candidate in (value, _relaxed(value)):
        for arm in arms:
            try:
                return msgspec.convert(candidate, arm)
            except msgspec.ValidationError:
                continue
    raise Misfit


def fits(value: Any, hint: Any) -> bool:
    try:
        fit(value, hint)
    except Misfit:
        return False
    return True


def hint_like(example: Any) -> Any:
    """The type that a default stands for; None stands for anything.

    'auto' is a choice that can be left open: strings and numbers are of its kind.
    """
    if example == "auto":
        return str | int | float
    if isinstance(example, (bool, str)):
        return type(example)
    if isinstance(example, (int, float)):
        return int | float
    return list | tuple if isinstance(example, (list, tuple)) else Any


def describe(hint: Any) -> str:
    """The hint as a user would write it."""
    if hint is type(None):
        return "None"
    if get_origin(hint) in _UNIONS:
        return " | ".join(describe(arm) for arm in get_args(hint))
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(arm) for arm in get_args(hint))
    if get_origin(hint) is None and isinstance(hint, type):
        return "dict" if is_dataclass(hint) else hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "")


def describe_like(example: Any) -> str:
    if example == "auto":
        return "'auto', another name or a number"
    kind = "number" if type(example) in (int, float) else type(example).__name__
    return f"a {kind} like {example!r}"


def arms_of(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the hint alone."""
    return get_args(hint) if get_origin(hint) in _UNIONS else (hint,)


def plain_scalar(value: Any) -> Any:
    """A NumPy scalar as the Python number it holds; anything else as it is."""
    is_numpy_scalar = hasattr(value, "dtype") and getattr(value, "shape", None) == ()
    return value.item() if is_numpy_scalar and hasattr(value, "item") else value


def _relaxed(value: Any) -> Any:
    """Convert whole floats to ints, which msgspec takes for both, and paths to strings."""
    if isinstance(value, Mapping):
        return {key: _relaxed(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_relaxed(v) for v in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else value


_UNIONS = (Union, types.UnionType)
