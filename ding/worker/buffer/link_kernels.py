"""Walks along links of stored steps, compiled: an episode may be a thousand steps long.

`gaps[slot]` is how many serial numbers on the neighbour of the step in that slot is; 0: none.
"""

# numba has no types that mypy could check.
# mypy: disable-error-code="misc, no-untyped-call, import-untyped, return-value, assignment"
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def walk(gaps: np.ndarray, serials: np.ndarray, steps: np.ndarray, oldest: int) -> np.ndarray:
    """Serial numbers of the neighbours `steps` links away, or of the last one before `oldest`."""
    found = np.empty(len(serials), np.int64)
    size = len(gaps)
    for i in range(len(serials)):
        at = serials[i]
        slot = at % size
        for _ in range(steps[i]):
            gap = gaps[slot]
            if gap == 0 or at + gap < oldest:
                break
            at += gap
            slot = wrapped(slot + gap, size)
        found[i] = at
    return found


@njit(cache=True)
def distance(gaps: np.ndarray, serials: np.ndarray, oldest: int) -> np.ndarray:
    """Number of links that can be followed from each serial number."""
    counted = np.empty(len(serials), np.int64)
    size = len(gaps)
    for i in range(len(serials)):
        at = serials[i]
        slot = at % size
        n = 0
        while True:
            gap = gaps[slot]
            if gap == 0 or at + gap < oldest:
                break
            at += gap
            slot = wrapped(slot + gap, size)
            n += 1
        counted[i] = n
    return counted


@njit(cache=True)
def wrapped(slot: int, size: int) -> int:
    """The slot in the ring; links are shorter than it, and a division would cost ten times this."""
    if slot >= size:
        return slot - size
    return slot + size if slot < 0 else slot
