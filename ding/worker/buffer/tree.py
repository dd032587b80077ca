"""Sums and minima over a changing array, in trees sixteen wide.

All levels lie in one array, the leaves first. A node is always computed afresh from its children,
never by adding a difference: rounding cannot build up, and the same leaves give the same tree.
Sixteen doubles are two cache lines, so a million leaves are five visits deep.
"""

# numba has no types that mypy could check.
# mypy: disable-error-code="misc, no-untyped-call, import-untyped, assignment"
from __future__ import annotations

import numpy as np
from numba import njit

WIDTH = 16


def level_offsets(n: int) -> np.ndarray:
    """Where each level begins, and where the last ends."""
    offsets, size = [0], max(n, 1)
    while size > 1:
        offsets.append(offsets[-1] + -(-size // WIDTH) * WIDTH)
        size = -(-size // WIDTH)
    if len(offsets) == 1:
        offsets.append(WIDTH)
    return np.array([*offsets, offsets[-1] + 1], dtype=np.int64)


@njit(cache=True)
def sum_of(tree: np.ndarray, at: int) -> float:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for i in range(at, at + WIDTH, 4):
        a += tree[i]
        b += tree[i + 1]
        c += tree[i + 2]
        d += tree[i + 3]
    return (a + b) + (c + d)


@njit(cache=True)
def min_of(tree: np.ndarray, at: int) -> float:
    a, b = tree[at], tree[at + 1]
    for i in range(at + 2, at + WIDTH, 2):
        a = min(a, tree[i])
        b = min(b, tree[i + 1])
    return min(a, b)


@njit(cache=True)
def lift(tree: np.ndarray, offsets: np.ndarray, nodes: np.ndarray, is_sum: bool) -> None:
    """Recompute everything above these leaves. Neighbours in `nodes` share their parents' work."""
    n = len(nodes)
    for level in range(1, len(offsets) - 1):
        kept = 0
        for k in range(n):
            parent = nodes[k] // WIDTH
            if kept == 0 or nodes[kept - 1] != parent:
                nodes[kept] = parent
                kept += 1
                at = offsets[level - 1] + parent * WIDTH
                value = sum_of(tree, at) if is_sum else min_of(tree, at)
                tree[offsets[level] + parent] = value
        n = kept


@njit(cache=True)
def set_leaves(
    tree: np.ndarray, offsets: np.ndarray, index: np.ndarray, values: np.ndarray, is_sum: bool
) -> None:
    for k in range(len(index)):
        tree[index[k]] = values[k]
    lift(tree, offsets, index.copy(), is_sum)


@njit(cache=True)
def set_range(
    tree: np.ndarray, offsets: np.ndarray, start: int, stop: int, value: float, is_sum: bool
) -> None:
    """One value in a row of leaves."""
    for i in range(start, stop):
        tree[i] = value
    for level in range(1, len(offsets) - 1):
        start, stop = start // WIDTH, (stop - 1) // WIDTH + 1
        for parent in range(start, stop):
            at = offsets[level - 1] + parent * WIDTH
            made = sum_of(tree, at) if is_sum else min_of(tree, at)
            tree[offsets[level] + parent] = made


@njit(cache=True)
def find(tree: np.ndarray, offsets: np.ndarray, x: float) -> int:
    """The first leaf at which the sum of all up to it exceeds `x`, among those above zero."""
    node = 0
    for level in range(len(offsets) - 2, 0, -1):
        at = offsets[level - 1] + node * WIDTH
        last = -1
        found = False
        for c in range(WIDTH):
            value = tree[at + c]
            if x < value:
                node = node * WIDTH + c
                found = True
                break
            if value > 0:
                last = c
            x -= value
        if not found:  # rounding: beyond the end of the last one that counts
            node = node * WIDTH + max(last, 0)
            x = np.inf
    return node


@njit(cache=True)
def find_all(tree: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.empty(len(values), np.int64)
    for k in range(len(values)):
        found[k] = find(tree, offsets, values[k])
    return found


@njit(cache=True)
def _parents_rising(
    tree: np.ndarray, offsets: np.ndarray, values: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """For values in order the nodes above the leaves, and in `left` what of a value is left there.

    Each goes on from the path of the one before it.
    """
    top = len(offsets) - 2
    found = np.zeros(len(values), np.int64)
    node = np.zeros(top + 1, np.int64)  # on the path, for each level
    begin, end = np.zeros(top + 1), np.zeros(top + 1)  # the sums before and after that node
    end[top] = np.inf
    for k in range(len(values)):
        x = values[k]
        level = 1
        while x >= end[level]:
            level += 1
        while level > 1:
            below = level - 1
            base, child, before = offsets[below], node[level] * WIDTH, begin[level]
            last = child + WIDTH - 1
            if k > 0 and child <= node[below] < last and end[below] <= x:
                child, before = node[below] + 1, end[below]
            value = tree[base + child]
            while child < last and x >= before + value:
                before += value
                child += 1
                value = tree[base + child]
            if x >= before + value:  # rounding: beyond the end of the last one that counts
                break
            level = below
            node[level], begin[level], end[level] = child, before, before + value
        found[k] = node[1] if level == 1 else -1
        left[k] = x - begin[1]
    return found


@njit(cache=True)
def find_rising(tree: np.ndarray, offsets: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`find_all` for values in order.

    The leaves are looked at in a loop of their own without branches: while one cache line is on its
    way from memory the next are asked for.
    """
    left = np.empty(len(values))
    found = _parents_rising(tree, offsets, values, left)
    for k in range(len(values)):
        if found[k] < 0:
            continue
        at, before, child = found[k] * WIDTH, 0.0, 0
        for c in range(WIDTH - 1):
            before += tree[at + c]
            child += np.int64(left[k] >= before)
        found[k] = at + child
    for k in range(len(values)):
        if found[k] < 0 or not tree[found[k]] > 0:
            found[k] = find(tree, offsets, values[k])
    return found


@njit(cache=True)
def reduce_range(
    tree: np.ndarray, offsets: np.ndarray, start: int, stop: int, is_sum: bool
) -> float:
    """Over leaves from `start` to before `stop`."""
    result = 0.0 if is_sum else np.inf
    for level in range(len(offsets) - 1):
        base = offsets[level]
        while start < stop and start % WIDTH != 0:
            value = tree[base + start]
            result = result + value if is_sum else min(result, value)
            start += 1
        while start < stop and stop % WIDTH != 0:
            stop -= 1
            value = tree[base + stop]
            result = result + value if is_sum else min(result, value)
        if start >= stop:
            break
        start, stop = start // WIDTH, stop // WIDTH
    return result


class SegmentTree:
    """Numbers whose reduction over any range is cheap to ask for and to keep."""

    neutral = 0.0
    is_sum = True

    def __init__(self, capacity: int) -> None:
        if capacity < 1 or capacity & (capacity - 1):
            raise ValueError(f"capacity = {capacity}: must be a power of two")
        self.capacity = capacity
        self._offsets = level_offsets(capacity)
        self._tree = np.full(self._offsets[-1], self.neutral)

    def reduce(self, start: int = 0, end: int | None = None) -> float:
        """Over `start` to before `end`; a negative end counts from the back."""
        stop = self.capacity if end is None else end + self.capacity if end < 0 else end
        if not 0 <= start < stop <= self.capacity:
            raise ValueError(f"no range from {start} to {end} in {self.capacity} values")
        return float(reduce_range(self._tree, self._offsets, start, stop, self.is_sum))

    def _checked(self, index: object) -> np.ndarray:
        found = np.atleast_1d(np.asarray(index, dtype=np.int64))
        if len(found) and not (found.min() >= 0 and found.max() < self.capacity):
            raise IndexError(f"{index} is not within 0 and {self.capacity - 1}")
        return found

    def __setitem__(self, index: object, value: object) -> None:
        slots = self._checked(index)
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), slots.shape)
        set_leaves(self._tree, self._offsets, slots, np.ascontiguousarray(values), self.is_sum)

    def __getitem__(self, index: object) -> object:
        found = self._tree[self._checked(index)]
        return float(found[0]) if np.ndim(index) == 0 else found  # type: ignore[arg-type]


class SumSegmentTree(SegmentTree):
    def find_prefixsum_idx(self, prefixsum: object, trust_caller: bool = True) -> object:
        """The first index with the sum of all values up to it above `prefixsum` (or several)."""
        wanted = np.atleast_1d(np.asarray(prefixsum, dtype=np.float64))
        if not trust_caller and not ((wanted >= 0) & (wanted <= self.reduce() + 1e-5)).all():
            raise ValueError(f"{prefixsum} is not between 0 and {self.reduce()}")
        found = find_all(self._tree, self._offsets, wanted)
        return int(found[0]) if np.ndim(prefixsum) == 0 else found  # type: ignore[arg-type]


class MinSegmentTree(SegmentTree):
    neutral = float("inf")
    is_sum = False
