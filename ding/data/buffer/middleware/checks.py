"""Copies, and limits on use and age."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from ding.data.buffer.buffer import Buffer, BufferedData, Middleware


def elements_of(sampled: Iterable[Any]) -> Iterator[BufferedData]:
    """Of what `sample` gave: elements, or groups of them."""
    for one in sampled:
        if isinstance(one, list):
            yield from one
        else:
            yield one


def clone_object() -> Middleware:
    """What goes in and what comes out are copies."""

    def copied(one: Any) -> Any:
        if isinstance(one, list):
            return [copied(element) for element in one]
        return replace(one, data=deepcopy(one.data), meta=deepcopy(one.meta))

    def middleware(action: str, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if action == "push":
            return chain(deepcopy(args[0]), *args[1:], **kwargs)
        result = chain(*args, **kwargs)
        return [copied(one) for one in result] if action == "sample" else result

    return middleware


def use_time_check(buffer_: Buffer, max_use: float = float("inf")) -> Middleware:
    """Counts uses in `meta['use_count']`; an element goes once it reached `max_use`."""

    def middleware(action: str, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = chain(*args, **kwargs)
        if action == "push":
            result.meta["use_count"] = 0
        elif action == "sample":
            used_up = []
            for element in elements_of(result):
                element.meta["use_count"] = element.meta.get("use_count", 0) + 1
                if element.meta["use_count"] >= max_use:
                    used_up.append(element.index)
            buffer_.delete(list(dict.fromkeys(used_up)))
        return result

    return middleware


def staleness_check(buffer_: Any, max_staleness: float = float("inf")) -> Middleware:
    """`sample(..., train_iter_sample_data=n)` first drops what is too many updates old.

    Elements are pushed with `meta['train_iter_data_collected']`.
    """

    def middleware(action: str, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if action == "push":
            meta = kwargs.get("meta") or (args[1] if len(args) > 1 else None) or {}
            if "train_iter_data_collected" not in meta:
                raise ValueError("staleness_check needs meta['train_iter_data_collected'] in push")
        if action == "sample":
            train_iter = kwargs.pop("train_iter_sample_data", None)
            if train_iter is None:
                raise ValueError("staleness_check needs sample(..., train_iter_sample_data=...)")
            stale = []
            for element in buffer_:
                staleness = train_iter - element.meta["train_iter_data_collected"]
                element.meta["staleness"] = staleness
                if staleness >= max_staleness:
                    stale.append(element.index)
            buffer_.delete(stale)
        return chain(*args, **kwargs)

    return middleware
