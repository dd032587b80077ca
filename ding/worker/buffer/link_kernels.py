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
        for _ in range(steps[i]):
            gap = gaps[at % size]
            if gap == 0 or at + gap < oldest:
                break
            at += gap
        found[i] = at
    return found


@njit(cache=True)
def distance(gaps: np.ndarray, serials: np.ndarray, oldest: int) -> np.ndarray:
    """Number of links that can be followed from each serial number."""
    counted = np.zeros(len(serials), np.int64)
    size = len(gaps)
    for i in range(len(serials)):
        at = serials[i]
        while True:
            gap = gaps[at % size]
            if gap == 0 or at + gap < oldest:
                break
            at += gap
            counted[i] += 1
    return counted
