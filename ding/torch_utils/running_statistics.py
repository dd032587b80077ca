"""Running statistics that are part of a policy's state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ding.torch_utils.distributed import Group, current

_NEGLIGIBLE = 1e-6
"""Share of the mean below which a deviation is what float32 rounds off."""


def scale_of(deviation: Any, mean: Any) -> np.ndarray:
    """Standard deviations to divide by; one that is negligible against the mean counts as 1."""
    deviation = np.asarray(deviation, dtype=np.float64)
    return np.where(deviation <= _NEGLIGIBLE * np.abs(mean), 1.0, deviation)


class Moments:
    """Count, mean and squared deviations of rows, in float64; merging two of them is exact.

    Chan et al. 1979, http://i.stanford.edu/pub/cstr/reports/cs/tr/79/773/CS-TR-79-773.pdf
    """

    def __init__(self, count: float = 0.0, mean: Any = 0.0, square: Any = 0.0) -> None:
        self.count, self.mean, self.square = count, np.asarray(mean), np.asarray(square)

    @classmethod
    def of(cls, rows: np.ndarray) -> Moments:
        """Moments over the first axis."""
        rows = rows.astype(np.float64)
        mean = rows.mean(axis=0)
        return cls(float(len(rows)), mean, np.square(rows - mean).sum(axis=0))

    @property
    def scale(self) -> np.ndarray:
        """What to divide rows by."""
        return scale_of(np.sqrt(self.square / self.count), self.mean)

    def merge(self, other: Moments) -> None:
        """Become the moments of both sets of rows."""
        total = self.count + other.count
        delta = other.mean - self.mean
        self.mean = self.mean + delta * (other.count / total)
        self.square = self.square + other.square + delta**2 * (self.count * other.count / total)
        self.count = total

    def plain(self) -> dict[str, Any]:
        return {"count": self.count, "mean": self.mean.copy(), "square": self.square.copy()}


class RunningScale:
    """Standard deviation of all values seen so far; 1 before the first and of equal values."""

    def __init__(self) -> None:
        self._count, self._mean, self._square = 0.0, 0.0, 0.0

    @property
    def std(self) -> float:
        if not self._count:
            return 1.0
        return float(scale_of(math.sqrt(self._square / self._count), self._mean)) + 1e-8

    def update(self, values: np.ndarray) -> None:
        """Chan's parallel formula: exact for batches of any size."""
        count, mean, variance = values.size, float(values.mean()), float(values.var())
        learners = current()
        if learners is not None:
            mean, variance = _of_all(learners, mean, variance)
        delta, total = mean - self._mean, self._count + count
        self._square += variance * count + delta**2 * self._count * count / total
        self._mean += delta * count / total
        self._count = total

    def state_dict(self) -> dict[str, Any]:
        return {"count": self._count, "mean": self._mean, "square": self._square}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._count, self._mean, self._square = state["count"], state["mean"], state["square"]


def _of_all(group: Group, mean: float, variance: float) -> tuple[float, float]:
    """Mean and variance of what all members see; that is as much for each."""
    moments = torch.tensor([mean, variance + mean**2], dtype=torch.float64)
    group.average_(moments)
    mean, square = moments.tolist()
    return mean, max(square - mean**2, 0.0)


class UpdateCount:
    """Number of updates so far, for what happens at every n-th of them."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> int:
        """Count one more: 1 at the first call."""
        self._count += 1
        return self._count

    def state_dict(self) -> dict[str, Any]:
        return {"count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._count = state["count"]
