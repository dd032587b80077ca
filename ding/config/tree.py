"""Nested dicts: values at dotted paths, merged, plain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ding.utils.errors import ConfigError

MISSING: Any = object()


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path and key else path or key


def lookup(tree: Any, path: str) -> Any:
    """The value at a dotted path, or MISSING."""
    for key in path.split(".") if path else ():
        if not isinstance(tree, Mapping) or key not in tree:
            return MISSING
        tree = tree[key]
    return tree


def section(tree: dict[str, Any], path: str) -> dict[str, Any]:
    """The dict at a dotted path, made if it is missing."""
    keys = path.split(".") if path else []
    for depth, key in enumerate(keys, start=1):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise misfit_error(".".join(keys[:depth]), tree, "a dict")
    return tree


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path, making the sections on the way."""
    parent, _, key = path.rpartition(".")
    section(tree, parent)[key] = value


def values_of(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path and value of everything that is no section with content."""
    for key, value in tree.items():
        where = join(path, key)
        if isinstance(value, Mapping) and value:
            yield from values_of(value, where)
        else:
            yield where, value


def plain_dict(tree: Any) -> Any:
    """Nested mappings as plain dicts; the other values as they are."""
    if isinstance(tree, Mapping):
        return {key: plain_dict(value) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(plain_dict(value) for value in tree)
    return tree


def misfit_error(path: str, value: Any, expected: str) -> ConfigError:
    kind = "" if value is None else f" ({type(value).__name__})"
    return ConfigError(f"config key '{path}' must be {expected}, got {short(value)}{kind}")


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
