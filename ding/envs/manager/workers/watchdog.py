"""Which workers take too long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ding.envs.manager.workers.channel import Phase
from ding.envs.manager.workers.shared import SharedBlock


class Watchdog:
    """Reads from the shared block what every worker does, and since when.

    Of a long time in which nobody looked only a little counts: Ctrl-Z stops workers and this
    process alike.
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
        units = len(block["flags"])
        running, started = block["running"].tolist(), block["started"].tolist()
        for w, (code, since) in enumerate(zip(running, started, strict=True)):
            if code >= 0:
                phase, unit = divmod(code, units)
                limit, name = self._limits[Phase(phase)], Phase(phase).name.lower()
                # Again: it may have begun something else meanwhile.
                if self._seconds(w, since, now) > limit and block["started"][w] == since:
                    yield w, f"{name} of env {unit % env_num} took longer than {limit} seconds"
            elif owes_answer(w):
                since = self._silent_since.setdefault(w, now)
                if self._seconds(w, since, now) > self.answer_limit:
                    yield w, f"its process did nothing for {self.answer_limit} seconds"
                continue
            self._silent_since.pop(w, None)

    def _seconds(self, w: int, since: float, now: float) -> float:
        """Those that count of what worker `w` does since then."""
        if self._begun.get(w, (None,))[0] != since:
            absent = self._absent_before if since < self._back_at else self._absent
            self._begun[w] = (since, absent)
        return now - since - (self._absent - self._begun[w][1])
