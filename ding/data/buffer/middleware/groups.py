"""Groups of elements, and views of a part of a buffer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ding.data.buffer.buffer import Buffer, BufferedData, Middleware
from ding.utils.errors import ConfigError, nearest

_PADDINGS = ("random", "none")


def padding(policy: str = "random") -> Middleware:
    """Fills groups up to the longest: with elements of the same group, or with empty ones."""
    if policy not in _PADDINGS:
        raise ConfigError(f"padding policy '{policy}'{nearest(policy, _PADDINGS)}")

    def filled(group: list[BufferedData], n: int) -> list[BufferedData]:
        if policy == "random":
            return group + random.choices(group, k=n - len(group))
        empty = BufferedData(data=None, index="", meta={})
        return group + [empty] * (n - len(group))

    def middleware(action: str, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = chain(*args, **kwargs)
        if action != "sample" or not result or not isinstance(result[0], list):
            return result
        longest = max(len(group) for group in result)
        return [filled(group, longest) for group in result]

    return middleware


def group_sample(
    size_in_group: int, ordered_in_group: bool = True, max_use_in_group: bool = True
) -> Middleware:
    """Of each group only `size_in_group` successive (or else any) elements.

    With `max_use_in_group` an element counts as used only if it was among them.
    """

    def picked(group: list[BufferedData]) -> list[BufferedData]:
        n = min(size_in_group, len(group))
        if not ordered_in_group:
            return random.sample(group, n)
        start = random.randint(0, len(group) - n)
        return group[start : start + n]

    def middleware(action: str, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = chain(*args, **kwargs)
        if action != "sample" or not result or not isinstance(result[0], list):
            return result
        chosen = [picked(group) for group in result]
        if max_use_in_group:
            kept = {element.index for group in chosen for element in group}
            for element in (e for group in result for e in group if e.index not in kept):
                if "use_count" in element.meta:
                    element.meta["use_count"] -= 1
        return chosen

    return middleware


def sample_range_view(
    buffer_: Buffer, start: int | None = None, end: int | None = None
) -> Middleware:
    """Draws from a slice of the buffer in order of age; negative numbers count from the back."""
    if start is None and end is None:
        raise ValueError("sample_range_view needs start or end")
    part = slice(start, end)

    def middleware(action: str, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if action == "sample":
            kwargs.setdefault("sample_range", part)
        return chain(*args, **kwargs)

    return middleware
