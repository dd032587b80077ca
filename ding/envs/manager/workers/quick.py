"""Whether a reset that is under way is worth waiting for."""

from __future__ import annotations

import time

import numpy as np

_QUICK_RESET = 0.02
# A first reset often builds the simulator: until there is a later one, wait so long to see.
_DOUBTFUL_RESET = 0.025


def is_quick(seconds: np.ndarray, unit: int, began: float) -> bool:
    """By what the last resets of each unit took (U, 3), newest first, infinite where none was.

    `began`: when the one that is under way in `unit` did.
    """
    if not np.isinf(seconds[unit, 1]) or float(seconds[unit, 0]) <= _QUICK_RESET:
        return float(seconds[unit].min()) <= _QUICK_RESET
    later_ones = seconds[~np.isinf(seconds[:, 1]), 0]
    if len(later_ones):
        return float(later_ones.min()) <= _QUICK_RESET
    return time.monotonic() - began < _DOUBTFUL_RESET
