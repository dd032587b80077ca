"""Fit of columns and spaces: what differs, in words that a message can use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gymnasium import Space, spaces


def misfit(column: Any, space: Space[Any]) -> str | None:
    """How the numbers differ from those of a space: parts, shape, dtype, range of discrete ones."""
    if isinstance(space, spaces.Dict):
        if not isinstance(column, dict) or set(column) != set(space.spaces):
            return f"with the parts {sorted(column) if isinstance(column, dict) else 'none'}"
        return _first(misfit(column[key], part) for key, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        if not isinstance(column, tuple) or len(column) != len(space.spaces):
            return "that are no such tuple"
        return _first(misfit(c, s) for c, s in zip(column, space.spaces, strict=True))
    if isinstance(column, (dict, tuple)):
        return "with several parts"
    return _leaf_misfit(column, space)


def _leaf_misfit(column: Any, space: Space[Any]) -> str | None:
    if column.shape[1:] != space.shape:
        return f"of shape {column.shape[1:]}"
    if isinstance(space, spaces.Box):
        return None if column.dtype == space.dtype else f"of dtype {column.dtype}"
    if column.dtype.kind not in "biu":
        return f"of dtype {column.dtype}"
    low, high = column.min(axis=0), column.max(axis=0)
    inside = space.contains(low.astype(space.dtype)) and space.contains(high.astype(space.dtype))
    return None if inside else f"from {low} to {high}"


def _first(problems: Iterable[str | None]) -> str | None:
    return next((problem for problem in problems if problem), None)


def scale_hint(ours: Space[Any], theirs: Space[Any]) -> str:
    """Advice for two boxes of actions that differ in their bounds only."""
    boxes = isinstance(ours, spaces.Box) and isinstance(theirs, spaces.Box)
    if not boxes or ours.shape != theirs.shape:
        return ""
    return "; Demonstrations.scaled_to(space) maps one scale onto the other"
