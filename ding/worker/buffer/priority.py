"""Priorities of the slots of a buffer, and drawing by them; compiled, a whole batch at a time.

`sums` is a tree of priority ** alpha (zero where nothing is) with its leaves, `mins` the minima
over those that are there, from the level above the leaves on. `slots` has priority and use side by
side: a draw at random pays for each place in memory that it looks at.
"""

# numba has no types that mypy could check.
# mypy: disable-error-code="misc, no-untyped-call, import-untyped, call-arg"
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ding.worker.buffer.tree import WIDTH, find, find_rising, level_offsets, min_of, sum_of

EPSILON = 1e-5  # no sample is ever without a chance


class PriorityDraw(NamedTuple):
    """Of each sample drawn."""

    slot: np.ndarray
    unique_id: np.ndarray
    priority: np.ndarray
    use: np.ndarray
    weight: np.ndarray


PRIORITY, USE = 0, 1


@njit(cache=True)
def _least_leaf(sums: np.ndarray, at: int) -> float:
    least = np.inf
    for i in range(at, at + WIDTH):
        least = min(least, sums[i] if sums[i] > 0 else np.inf)
    return least


@njit(cache=True)
def _lift(sums: np.ndarray, mins: np.ndarray, offsets: np.ndarray, nodes: np.ndarray) -> None:
    """Recompute everything above these leaves; `nodes` is used up."""
    n = len(nodes)
    for level in range(1, len(offsets) - 1):
        kept = 0
        for k in range(n):
            parent = nodes[k] // WIDTH
            if kept == 0 or nodes[kept - 1] != parent:
                nodes[kept] = parent
                kept += 1
                at = offsets[level - 1] + parent * WIDTH
                here = offsets[level] + parent
                sums[here] = sum_of(sums, at)
                least = _least_leaf(sums, at) if level == 1 else min_of(mins, at - offsets[1])
                mins[here - offsets[1]] = least
        n = kept


@njit(cache=True)
def _stratified(sums: np.ndarray, offsets: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """One leaf from each of equal parts of the whole sum."""
    n = len(uniform)
    share = sums[-1] / n
    values = np.empty(n)
    for k in range(n):
        values[k] = (k + uniform[k]) * share
    return find_rising(sums, offsets, values)


@njit(cache=True)
def _limited(
    sums: np.ndarray,
    mins: np.ndarray,
    offsets: np.ndarray,
    uniform: np.ndarray,
    slots: np.ndarray,
    max_use: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The same, but a leaf is out at once when it has been used up. Leaves and what they were."""
    n = len(uniform)
    found, leaves = np.empty(n, np.int64), np.empty(n)
    one = np.empty(1, np.int64)
    for k in range(n):
        i = find(sums, offsets, (k + uniform[k]) / n * sums[-1])
        found[k], leaves[k] = i, sums[i]
        times = 1
        for j in range(k):
            times += found[j] == i
        if slots[i, USE] + times >= max_use:
            sums[i] = 0.0
            one[0] = i
            _lift(sums, mins, offsets, one)
    return found, leaves


@njit(cache=True)
def draw(
    sums: np.ndarray,
    mins: np.ndarray,
    offsets: np.ndarray,
    uniform: np.ndarray,
    slots: np.ndarray,
    limits: tuple[float, float, int],
) -> PriorityDraw:
    """`limits`: max_use, beta, and the serial number of the newest sample."""
    max_use, beta, newest = limits
    n, size = len(uniform), len(slots)
    smallest = mins[-1]
    if max_use == np.inf:
        found = _stratified(sums, offsets, uniform)
        leaves = sums[found]
    else:
        found, leaves = _limited(sums, mins, offsets, uniform, slots, max_use)
    unique_id, weight = np.empty(n, np.int64), np.empty(n, np.float32)
    priorities, uses = np.empty(n), np.empty(n, np.int32)
    for k in range(n):  # on its own: nothing waits while memory answers
        i = found[k]
        slots[i, USE] += 1
        uses[k], priorities[k] = slots[i, USE], slots[i, PRIORITY]
    for k in range(n):
        # Over the largest weight there could be, that of the smallest priority.
        weight[k] = (leaves[k] / smallest) ** -beta
        unique_id[k] = newest - (newest - found[k]) % size
    return PriorityDraw(found, unique_id, priorities, uses, weight)


@njit(cache=True)
def place(
    sums: np.ndarray,
    mins: np.ndarray,
    offsets: np.ndarray,
    slots: np.ndarray,
    span: tuple[int, int],
    priority: tuple[float, float],
) -> int:
    """New samples in slots from `start` to before `stop`; returns how many were there before.

    `priority`: of all of them, and the same to the power of alpha.
    """
    start, stop = span
    value, leaf = priority
    lost = 0
    for i in range(start, stop):
        lost += slots[i, PRIORITY] > 0
        slots[i, PRIORITY], slots[i, USE] = value, 0
        sums[i] = leaf
    _lift(sums, mins, offsets, np.arange(start, stop))
    return lost


@njit(cache=True)
def assign(
    sums: np.ndarray,
    mins: np.ndarray,
    offsets: np.ndarray,
    slots: np.ndarray,
    index: np.ndarray,
    values: np.ndarray,
    alpha: float,
) -> float:
    """Priorities of samples that are there (0: not any more); returns the largest."""
    largest = 0.0
    leaves = np.zeros(len(index))
    for k in range(len(index)):
        largest = max(largest, values[k])
        if values[k] > 0:
            leaves[k] = values[k] ** alpha
    for k in range(len(index)):  # on its own: nothing waits while memory answers
        slots[index[k], PRIORITY] = values[k]
        sums[index[k]] = leaves[k]
    _lift(sums, mins, offsets, index.copy())
    return largest


@njit(cache=True)
def find_slots(
    slots: np.ndarray, unique_id: np.ndarray, values: np.ndarray, oldest: int, serial: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Slots and new priorities of samples that are still there, and if all were numbers."""
    index, kept = np.empty(len(unique_id), np.int64), np.empty(len(unique_id))
    n, finite = 0, True
    for k in range(len(unique_id)):
        finite &= np.isfinite(values[k])
        i = unique_id[k] % len(slots)
        if oldest <= unique_id[k] < serial and slots[i, PRIORITY] > 0:
            index[n], kept[n] = i, abs(values[k]) + EPSILON
            n += 1
    return index[:n], kept[:n], finite


class PriorityTree:
    """Priority and use of each slot; sum and minimum of priority ** alpha over those in use."""

    def __init__(self, size: int, alpha: float) -> None:
        self.alpha = alpha
        self._offsets = level_offsets(size)
        self._sums = np.zeros(self._offsets[-1])
        self._mins = np.full(self._offsets[-1] - self._offsets[1], np.inf)
        self._slots = np.zeros((size, 2))
        self._all: Any = (self._sums, self._mins, self._offsets, self._slots)
        self.leaves = self._sums[:size]
        self.priority = self._slots[:, PRIORITY]
        """Zero where nothing is."""
        self.use = self._slots[:, USE]

    @property
    def total(self) -> float:
        return float(self._sums[-1])

    @property
    def smallest(self) -> float:
        return float(self._mins[-1])

    def draw(self, uniform: np.ndarray, max_use: float, beta: float, newest: int) -> PriorityDraw:
        """Slots and their uses counted; what has reached `max_use` cannot be drawn again."""
        sums, mins, offsets, slots = self._all
        return draw(sums, mins, offsets, uniform, slots, (max_use, beta, newest))

    def place(self, start: int, stop: int, priority: float) -> int:
        return place(*self._all, (start, stop), (priority, priority**self.alpha))

    def find(self, ids: np.ndarray, priority: np.ndarray, oldest: int, serial: int) -> Any:
        return find_slots(self._slots, ids, priority, oldest, serial)

    def set(self, slots: np.ndarray, priority: np.ndarray) -> float:
        """Returns the largest of these priorities."""
        return assign(*self._all, slots, priority, self.alpha)

    def remove(self, slots: np.ndarray) -> None:
        assign(*self._all, slots, np.zeros(len(slots)), self.alpha)
