"""Prioritised sampling for buffers with middleware, on the trees of `ding.worker.buffer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class PriorityExperienceReplay:
    """Draws by `meta['priority']` (the largest so far if absent) to the power of a factor.

    Samples carry `meta['priority_IS']`, their importance weight.
    """

    def __init__(
        self,
        buffer_: Any,
        IS_weight: bool = True,  # noqa: N803 (established name, as below)
        priority_power_factor: float = 0.6,
        IS_weight_power_factor: float = 0.4,  # noqa: N803
        IS_weight_anneal_train_iter: int = int(1e5),  # noqa: N803
    ) -> None:
        self.buffer = buffer_
        self._is_weight = IS_weight
        self._alpha, self._beta = priority_power_factor, IS_weight_power_factor
        self._anneal = IS_weight_anneal_train_iter
        self._n_draw = 0
        self._forget()

    def _clear(self, chain: Callable[..., Any]) -> Any:
        self._forget()
        return chain()

    def _forget(self) -> None:
        from ding.worker.buffer.priority import PriorityTree

        self._tree = PriorityTree(self.buffer.size, self._alpha)
        self._index = [""] * self.buffer.size
        self._max_priority = 1.0

    def __call__(self, action: str, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        act = getattr(self, f"_{action}", None)
        return chain(*args, **kwargs) if act is None else act(chain, *args, **kwargs)

    def _slot(self, index: str) -> int:
        return int(index) % self.buffer.size

    def _push(self, chain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        element = chain(*args, **kwargs)
        element.meta.setdefault("priority", self._max_priority)
        self._index[self._slot(element.index)] = element.index
        self._set(element.index, element.meta["priority"])
        return element

    def _set(self, index: str, priority: float) -> None:
        slots = np.array([self._slot(index)])
        self._tree.set(slots, np.array([abs(float(priority)) + 1e-5]))
        self._max_priority = max(self._max_priority, float(priority))

    def _sample(self, chain: Callable[..., Any], size: int | None = None, **kwargs: Any) -> Any:
        if size is None or size == 0:
            return chain(size, **kwargs)
        if self.buffer.count() < size and not kwargs.get("replace"):
            return chain(size, **kwargs)  # which knows what to do about it
        uniform = self.buffer._rng.random(size)
        grown = min(1.0, self._n_draw / self._anneal) if self._anneal else 0.0
        beta = self._beta + (1 - self._beta) * grown
        drawn = self._tree.draw(uniform, float("inf"), beta, newest=0)
        self._n_draw += 1
        elements = chain(indices=[self._index[slot] for slot in drawn.slot])
        for element, weight in zip(elements, drawn.weight, strict=True):
            element.meta["priority_IS"] = float(weight) if self._is_weight else 1.0
        return elements

    def _update(
        self,
        chain: Callable[..., Any],
        index: str,
        data: Any = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        known = chain(index, data, meta)
        if known and meta and "priority" in meta:
            self._set(index, meta["priority"])
        return known

    def _delete(self, chain: Callable[..., Any], index: str | list[str]) -> Any:
        for one in [index] if isinstance(index, str) else index:
            if self._index[self._slot(one)] == one:
                self._index[self._slot(one)] = ""
                self._tree.remove(np.array([self._slot(one)]))
        return chain(index)

    def state_dict(self) -> dict[str, Any]:
        return {
            "priority": self._tree.priority.copy(),
            "index": list(self._index),
            "max_priority": self._max_priority,
            "n_draw": self._n_draw,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._forget()
        slots = np.flatnonzero(state["priority"])
        self._tree.set(slots, state["priority"][slots])
        self._index = list(state["index"])
        self._max_priority, self._n_draw = state["max_priority"], state["n_draw"]
