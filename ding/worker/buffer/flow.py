"""Limits on how much is pushed for each sample drawn, and what is written down about samples."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ding.utils.batch import Batch
from ding.utils.errors import ConfigError


class ThruputController:
    """Keeps pushed / sampled within limits; both counts fade, 1 % being left after the window."""

    def __init__(self, cfg: Any, clock: Callable[[], float] = time.monotonic) -> None:
        limits = cfg["push_sample_rate_limit"]
        self._most, self._least = float(limits["max"]), float(limits["min"])
        self._window = float(cfg["window_seconds"])
        self._ratio = float(cfg["sample_min_limit_ratio"])
        if self._ratio < 1:
            raise ConfigError(f"sample_min_limit_ratio = {self._ratio}: must be at least 1")
        if self._most < self._least:
            raise ConfigError(
                f"push_sample_rate_limit: max = {self._most} is less than min = {self._least}"
            )
        self._limited = self._most < float("inf") or self._least > 0
        self._clock, self._time = clock, clock()
        self._pushed = self._sampled = 0.0

    def _fade(self) -> None:
        now = self._clock()
        left = 0.01 ** ((now - self._time) / self._window)
        self._pushed, self._sampled, self._time = self._pushed * left, self._sampled * left, now

    def may_push(self, n: int) -> bool:
        if not self._limited:
            return True
        self._fade()
        # Before anything was sampled there is no rate, and without data there never would be.
        return not self._sampled or (self._pushed + n) / self._sampled <= self._most

    def may_sample(self, n: int, valid: int) -> bool:
        if valid < self._ratio * n:
            return False
        if not self._limited:
            return True
        self._fade()
        return self._pushed / (self._sampled + n) >= self._least

    def pushed(self, n: int) -> None:
        self._pushed += n

    def sampled(self, n: int) -> None:
        self._sampled += n

    def state_dict(self) -> dict[str, float]:
        self._fade()
        return {"pushed": self._pushed, "sampled": self._sampled}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self._pushed, self._sampled = state["pushed"], state["sampled"]
        self._time = self._clock()


class SampledMonitor:
    """Use, staleness and priority of what is drawn: means over the last few of many batches."""

    def __init__(self, cfg: Any) -> None:
        self._every = int(cfg["print_freq"])
        self._recent: deque[dict[str, float]] = deque(maxlen=int(cfg["average_range"]))
        self._n_batch = 0

    def add(self, columns: Batch) -> dict[str, float] | None:
        """The averages when it is time to write them down."""
        self._n_batch += 1
        # Nobody sees the batches in between.
        if -self._n_batch % self._every < self._recent.maxlen:  # type: ignore[operator]
            self._recent.append(_summary(columns))
        if self._n_batch % self._every:
            return None
        return {k: float(np.mean([one[k] for one in self._recent])) for k in self._recent[0]}


def _summary(columns: Batch) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in ("use", "staleness", "priority"):
        found |= {f"{name}_mean": float(columns[name].mean()), f"{name}_max": columns[name].max()}
    return found | {"priority_min": float(columns["priority"].min())}
