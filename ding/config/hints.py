"""Does a value fit a type hint, or an example, and what does it become? Used for config values."""

from __future__ import annotations

import collections.abc
import os
import types
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin


class Misfit(Exception):  # noqa: N818  (a signal between two functions, never seen by a user)
    """The value does not fit the hint."""


def fit(value: Any, hint: Any) -> Any:
    """The value as the hint wants it: `1e5` for an int is `100000`, a list for a tuple a tuple."""
    fitter = _FITTERS.get(get_origin(hint) or hint)
    if fitter is not None:
        return fitter(value, get_args(hint))
    if isinstance(hint, type):
        accepts = isinstance(value, hint) or (is_dataclass(hint) and isinstance(value, Mapping))
        return _need(accepts, value)
    return value


def fit_example(value: Any, example: Any) -> Any:
    """Like `fit`, by a value of the same kind; None is an example of anything.

    'auto' stands for a choice that can be left open: strings and numbers are of its kind.
    """
    if example == "auto" and type(value) in (int, float):
        return value
    if isinstance(example, bool):
        return _fit_bool(value)
    if isinstance(example, (int, float)):
        return _need(isinstance(value, (int, float)) and not isinstance(value, bool), value)
    if isinstance(example, str):
        return _fit_str(value)
    if isinstance(example, (list, tuple)):
        return _need(isinstance(value, (list, tuple)), value)
    return value


def fits(value: Any, hint: Any) -> bool:
    try:
        fit(value, hint)
    except Misfit:
        return False
    return True


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


def plain_scalar(value: Any) -> Any:
    """A NumPy scalar as the Python number it holds; anything else as it is."""
    is_numpy_scalar = hasattr(value, "dtype") and getattr(value, "shape", None) == ()
    return value.item() if is_numpy_scalar and hasattr(value, "item") else value


def arms_of(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the hint alone."""
    return get_args(hint) if get_origin(hint) in _UNIONS else (hint,)


def _need(accepts: bool, value: Any) -> Any:
    if not accepts:
        raise Misfit
    return value


def _fit_any(value: Any, _: tuple[Any, ...] = ()) -> Any:
    return value


def _fit_none(value: Any, _: tuple[Any, ...] = ()) -> Any:
    return _need(value is None, value)


def _fit_bool(value: Any, _: tuple[Any, ...] = ()) -> Any:
    return _need(isinstance(value, bool), value)


def _fit_int(value: Any, _: tuple[Any, ...] = ()) -> Any:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(_need(whole and not isinstance(value, bool), value))


def _fit_float(value: Any, _: tuple[Any, ...] = ()) -> Any:
    return float(_need(isinstance(value, (int, float)) and not isinstance(value, bool), value))


def _fit_str(value: Any, _: tuple[Any, ...] = ()) -> Any:
    return os.fspath(_need(isinstance(value, (str, os.PathLike)), value))


def _fit_list(value: Any, args: tuple[Any, ...] = ()) -> Any:
    item = args[0] if args else Any
    return [fit(v, item) for v in _need(isinstance(value, (list, tuple)), value)]


def _fit_tuple(value: Any, args: tuple[Any, ...] = ()) -> Any:
    _need(isinstance(value, (list, tuple)), value)
    if not args or args[-1] is Ellipsis:
        return tuple(_fit_list(value, args))
    _need(len(value) == len(args), value)
    return tuple(fit(v, arg) for v, arg in zip(value, args, strict=True))


def _fit_sequence(value: Any, args: tuple[Any, ...] = ()) -> Any:
    return type(_need(isinstance(value, (list, tuple)), value))(_fit_list(value, args))


def _fit_dict(value: Any, args: tuple[Any, ...] = ()) -> Any:
    _need(isinstance(value, Mapping), value)
    return {key: fit(v, args[1]) for key, v in value.items()} if args else value


def _fit_callable(value: Any, _: tuple[Any, ...] = ()) -> Any:
    return _need(callable(value), value)


def _fit_literal(value: Any, args: tuple[Any, ...]) -> Any:
    return _need(any(type(value) is type(arm) and value == arm for arm in args), value)


def _fit_union(value: Any, args: tuple[Any, ...]) -> Any:
    # The arm of the very same type goes first, so that 1.0 stays a float in `int | float`.
    kind: Any = type(value)
    for arm in sorted(args, key=lambda arm: kind is not (get_origin(arm) or arm)):
        if fits(value, arm):
            return fit(value, arm)
    raise Misfit


_UNIONS = (Union, types.UnionType)
_FITTERS: dict[Any, Callable[[Any, tuple[Any, ...]], Any]] = {
    Any: _fit_any,
    object: _fit_any,
    None: _fit_none,
    type(None): _fit_none,
    bool: _fit_bool,
    int: _fit_int,
    float: _fit_float,
    str: _fit_str,
    list: _fit_list,
    tuple: _fit_tuple,
    collections.abc.Sequence: _fit_sequence,
    dict: _fit_dict,
    collections.abc.Mapping: _fit_dict,
    collections.abc.Callable: _fit_callable,
    Literal: _fit_literal,
    Union: _fit_union,
    types.UnionType: _fit_union,
}
