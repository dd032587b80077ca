"""What is pushed and drawn, and how it is timed: the same for every library. NumPy only."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

PUSHES, DRAWS = (1, 8, 80), (64, 256, 512)
SHAPES: dict[str, tuple[tuple[int, ...], Any]] = {
    "vec": ((4,), np.float32),
    "img": ((4, 84, 84), np.uint8),
}
Batch = dict[str, np.ndarray]


class Side(Protocol):
    """One buffer of one library."""

    def prepared(self, batch: Batch) -> Any:
        """The batch as the library wants it; not timed."""

    def push(self, prepared: Any) -> None: ...

    def sample(self, n: int) -> Any: ...

    def sample_and_update(self, n: int, priority: np.ndarray) -> None: ...


Make = Callable[..., Side]
"""`make(kind, capacity, prioritised=False, n=rows of a push)`."""


def raw_bytes(kind: str) -> int:
    """Of one transition: obs, next obs, action, reward, two flags."""
    shape, dtype = SHAPES[kind]
    return 2 * int(np.prod(shape)) * np.dtype(dtype).itemsize + 8 + 4 + 2


class Stream:
    """Steps of one env that never repeat: each frame is new, stacks share all but one of them."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        self._kind, self._rng = kind, np.random.default_rng(seed)
        shape, dtype = SHAPES[kind]
        self._pool = self._rng.integers(0, 255, (64, *shape[1:])).astype(dtype)
        self._last = self._pool[:4].copy() if kind == "img" else None
        self._count = 0

    def batch(self, n: int) -> Batch:
        obs, next_obs = self._images(n) if self._kind == "img" else self._vectors(n)
        flags = np.zeros(n, bool)
        return {
            "obs": obs,
            "action": self._rng.integers(0, 2, n),
            "reward": np.ones(n, np.float32),
            "next_obs": next_obs,
            "terminated": flags,
            "truncated": flags.copy(),
        }

    def _vectors(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        obs = self._rng.random((n + 1, 4)).astype(np.float32)
        return obs[:-1].copy(), obs[1:].copy()

    def _images(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        assert self._last is not None
        new = self._pool[self._rng.integers(0, len(self._pool), n)]
        for frame in new:  # unlike any other
            self._count += 1
            frame.reshape(-1)[:8] = np.array([self._count], np.int64).view(np.uint8)
        frames = np.concatenate([self._last, new])
        self._last = frames[-4:].copy()
        stacks = np.stack([frames[i : i + 4] for i in range(n + 1)])
        return stacks[:-1].copy(), stacks[1:].copy()


def rss() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


def least(run: Callable[[], Any], n_call: int, seconds: float) -> float:
    """Microseconds of processor time per call, the least of many rounds of `n_call`."""
    best, end = float("inf"), time.perf_counter() + seconds
    rounds = 0
    while rounds < 5 or (time.perf_counter() < end and rounds < 400):
        start = time.process_time()
        for _ in range(n_call):
            run()
        best = min(best, (time.process_time() - start) / n_call)
        rounds += 1
    return 1e6 * best


def least_push(side: Side, stream: Stream, n: int, seconds: float) -> float:
    """The same for pushes, each of new rows, which are made outside of the time."""
    count = 400 // n + 4 if stream._kind == "vec" else max(2, 64 // n)
    best, end, rounds = float("inf"), time.perf_counter() + seconds, 0
    while rounds < 5 or (time.perf_counter() < end and rounds < 100):
        batches = [side.prepared(stream.batch(n)) for _ in range(count)]
        start = time.process_time()
        for batch in batches:
            side.push(batch)
        best = min(best, (time.process_time() - start) / count)
        rounds += 1
    return 1e6 * best


def measured(
    make: Make, kind: str, capacity: int, seconds: float
) -> Iterator[tuple[str, int, float]]:
    """(what, rows, microseconds), and bytes per transition as ('memory', 0, bytes)."""
    stream = Stream(kind)
    warm = make(kind, 1024, n=8)
    _fill(warm, stream, 1024, 8)
    warm.sample(64)
    del warm
    gc.collect()
    before = rss()
    side: Side | None = make(kind, capacity, n=8)
    assert side is not None
    _fill(side, stream, capacity, 8)
    yield "memory", 0, (rss() - before) / capacity
    for n in DRAWS:
        yield "sample", n, least(partial(side.sample, n), 20, seconds)
    yield "push", 8, least_push(side, stream, 8, seconds)
    side = None
    for n in (1, 80):
        # A ring that has been around once, so that no page is new: smaller, the cost is the same.
        side = make(kind, min(capacity, 4000), n=n)
        _fill(side, stream, min(capacity, 4000), n)
        yield "push", n, least_push(side, stream, n, seconds)
    yield from _prioritised(make, kind, capacity, seconds)


def _prioritised(
    make: Make, kind: str, capacity: int, seconds: float
) -> Iterator[tuple[str, int, float]]:
    try:
        side = make(kind, capacity, prioritised=True, n=8)
    except NotImplementedError:
        return
    _fill(side, Stream(kind), capacity, 8)
    rng = np.random.default_rng(0)
    for n in DRAWS:  # priorities that differ, as after some training
        for _ in range(200):
            side.sample_and_update(n, rng.random(n) + 0.01)
        priority = rng.random(n) + 0.01
        call = partial(side.sample_and_update, n, priority)
        yield "prioritised", n, least(call, 20, seconds)


def _fill(side: Side, stream: Stream, capacity: int, n: int) -> None:
    """Past the end once. Vectors need not differ, and making images is slow: those are few."""
    if stream._kind == "vec":
        batch = side.prepared(stream.batch(n))
        for _ in range(capacity // n + 1):
            side.push(batch)
        return
    for _ in range(capacity // n + 1):
        side.push(side.prepared(stream.batch(n)))
