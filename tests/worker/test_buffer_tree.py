from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ding.worker.buffer.priority import PriorityTree
from ding.worker.buffer.tree import MinSegmentTree, SumSegmentTree, find_rising


def test_by_hand() -> None:
    tree, least = SumSegmentTree(4), MinSegmentTree(4)
    for i, value in enumerate([1.0, 0.0, 3.0, 2.0]):
        tree[i] = least[i] = value
    assert tree.reduce() == 6
    assert tree.reduce(1, 3) == 3
    assert tree.reduce(1, -1) == 3
    assert least.reduce() == 0
    assert least.reduce(2) == 2
    assert tree[2] == 3
    found = [tree.find_prefixsum_idx(x) for x in (0.0, 0.99, 1.0, 3.99, 4.0, 5.9)]
    assert found == [0, 0, 2, 2, 3, 3]
    assert tree.find_prefixsum_idx(7.0) == 3
    with pytest.raises(ValueError, match="between 0 and 6"):
        tree.find_prefixsum_idx(7.0, trust_caller=False)


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="power of two"):
        SumSegmentTree(6)
    tree = SumSegmentTree(8)
    with pytest.raises(IndexError):
        tree[8] = 1.0
    with pytest.raises(IndexError):
        tree[-1]
    with pytest.raises(ValueError, match="range"):
        tree.reduce(3, 3)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([1, 2, 16, 32, 256, 1024]),
    st.lists(st.tuples(st.integers(0, 1023), st.floats(0, 100)), min_size=1, max_size=60),
    st.integers(0, 1023),
    st.integers(1, 1024),
)
def test_like_plain_arrays(
    capacity: int, writes: list[tuple[int, float]], low: int, high: int
) -> None:
    sums, mins = SumSegmentTree(capacity), MinSegmentTree(capacity)
    plain, plain_min = np.zeros(capacity), np.full(capacity, np.inf)
    index = np.array([i % capacity for i, _ in writes])
    values = np.array([value for _, value in writes])
    half = len(writes) // 2
    for part in (slice(0, half), slice(half, None)):
        sums[index[part]] = values[part]
        mins[index[part]] = values[part]
    for i, value in zip(index, values, strict=True):
        plain[i] = plain_min[i] = value
    start, stop = low % capacity, high % capacity + 1
    if start < stop:
        assert sums.reduce(start, stop) == pytest.approx(plain[start:stop].sum())
        assert mins.reduce(start, stop) == plain_min[start:stop].min()
    assert sums.reduce() == pytest.approx(plain.sum())


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 700), st.integers(0, 2**31), st.integers(1, 80))
def test_rising_finds_what_cumsum_says(size: int, seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    tree = PriorityTree(size, alpha=1.0)
    values = rng.integers(0, 4, size).astype(float)  # whole numbers: sums are exact
    values[rng.integers(size)] = 2.0
    there = np.flatnonzero(values)
    tree.set(there, values[there])
    wanted = np.sort(rng.random(n) * values.sum())
    expected = np.searchsorted(np.cumsum(values), wanted, side="right")
    assert np.array_equal(find_rising(tree._sums, tree._offsets, wanted), expected)
    beyond = find_rising(tree._sums, tree._offsets, np.array([values.sum() + 1]))
    assert beyond[0] == there[-1]


def test_rounding_cannot_build_up() -> None:
    rng = np.random.default_rng(0)
    tree = PriorityTree(100, alpha=0.7)
    for _ in range(300):
        slots = rng.integers(0, 100, 20)
        tree.set(slots, rng.random(20) * 10.0 ** rng.integers(-6, 6))
    fresh = PriorityTree(100, alpha=0.7)
    there = np.flatnonzero(tree.priority)
    fresh.set(there, tree.priority[there])
    assert fresh.total == tree.total
    assert fresh.smallest == tree.smallest
    assert np.array_equal(fresh._sums, tree._sums)
