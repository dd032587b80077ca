"""Times of workers: which ones take too long, which resets are quick."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ding.envs.manager.faults import Phase
from ding.envs.manager.workers.shared_block import SharedBlock

_QUICK_RESET = 0.02
# A first reset often builds the simulator: until there is a later one, wait so long to see.
_DOUBTFUL_RESET = 0.025


class Watchdog:
    """Reads from the shared block what every worker does, and since when.

    Time while the parent did not look counts only up to two looks' distance: Ctrl-Z stops workers
    and the parent alike.
    """

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        self.answer_limit: float = cfg["connect_timeout"] or math.inf
        self._limits = {
            Phase.STEP: cfg["step_timeout"] or math.inf,
            Phase.RESET: cfg["reset_timeout"] or self.answer_limit,
            Phase.MAKE: self.answer_limit,
            Phase.CALL: self.answer_limit,
        }
        self.patience = min(1.0, *(limit / 4 for limit in self._limits.values()))
        """Seconds between two looks."""
        self._look_at = 0.0
        self._looked_at = math.inf
        # Seconds that do not count, with and without the last absence, and when that ended.
        self._absent = self._absent_before = 0.0
        self._back_at = -math.inf
        self._begun: dict[int, tuple[float, float]] = {}
        self._silent_since: dict[int, float] = {}

    def is_due(self, now: float) -> bool:
        missed = now - self._looked_at - 2 * self.patience
        if missed > 0:
            self._absent_before, self._back_at = self._absent, now
            self._absent += missed
        self._looked_at = now
        if now < self._look_at:
            return False
        self._look_at = now + self.patience
        return True

    def overdue(
        self, block: SharedBlock, env_num: int, now: float, owes_answer: Callable[[int], bool]
    ) -> Iterator[tuple[int, str]]:
        """Workers that must be given up, and why."""
        rows = len(block["flags"])
        running, started = block["running"].tolist(), block["started"].tolist()
        for w, (code, since) in enumerate(zip(running, started, strict=True)):
            if code >= 0:
                phase, row = divmod(code, rows)
                limit, name = self._limits[Phase(phase)], Phase(phase).name.lower()
                # Again: it may have begun something else meanwhile.
                if self._seconds(w, since, now) > limit and block["started"][w] == since:
                    yield w, f"{name} of env {row % env_num} took longer than {limit} seconds"
            elif owes_answer(w):
                since = self._silent_since.setdefault(w, now)
                if self._seconds(w, since, now) > self.answer_limit:
                    yield w, f"its process did nothing for {self.answer_limit} seconds"
                continue
            self._silent_since.pop(w, None)

    def _seconds(self, w: int, since: float, now: float) -> float:
        """Seconds that count since worker `w` began its present activity."""
        if self._begun.get(w, (None,))[0] != since:
            absent = self._absent_before if since < self._back_at else self._absent
            self._begun[w] = (since, absent)
        return now - since - (self._absent - self._begun[w][1])


def is_quick(seconds: np.ndarray, number: int, began: float) -> bool:
    """Whether the reset of an env instance that is under way since `began` will be short.

    `seconds` (U, 3): what the last resets of each instance took, newest first, infinite where none
    was.
    """
    if not np.isinf(seconds[number, 1]) or float(seconds[number, 0]) <= _QUICK_RESET:
        return float(seconds[number].min()) <= _QUICK_RESET
    later_ones = seconds[~np.isinf(seconds[:, 1]), 0]
    if len(later_ones):
        return float(later_ones.min()) <= _QUICK_RESET
    return time.monotonic() - began < _DOUBTFUL_RESET
