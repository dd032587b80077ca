"""Failure policy: retries after failures of envs, their counts and their reports."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakMethod

from ding.envs.manager.faults import Fault
from ding.envs.manager.flight.recorder import FlightRecorder
from ding.envs.manager.slot import EnvState, Instance, Slot, SlotTable
from ding.utils.errors import EnvError

logger = logging.getLogger(__name__)


@contextmanager
def closing_errors_noted(failure: BaseException) -> Iterator[None]:
    """Add what is raised inside to a failure that is about to be raised, and matters more."""
    try:
        yield
    except Exception as error:  # An env may raise anything.
        failure.add_note(f"closing failed too: {error!r}")


class FailurePolicy:
    """Decides whether an env that failed begins again or the run ends, for all executors."""

    def __init__(
        self,
        slots: SlotTable,
        flights: FlightRecorder,
        cfg: Mapping[str, Any],
        close: WeakMethod[Callable[[], None]],
    ) -> None:
        self._slots, self._flights, self._close = slots, flights, close
        self.max_retry = max(int(cfg["max_retry"]), 1)
        self.counts: Counter[str] = Counter()

    def step_failed(self, slot: Slot, fault: Fault) -> EnvError | None:
        """Drop an episode; the error to raise if too many steps in a row failed."""
        if fault.kind != "lost":
            slot.failures += 1
            self._slots.any_failures = True
            if slot.failures >= self.max_retry:
                self._slots.enter(slot, EnvState.ERROR)
                return fault.failure(self._flights.report(slot.env_id, fault))
        logger.warning("Dropping an episode: %s", self._flights.report(slot.env_id, fault))
        self._slots.enter(slot, EnvState.RESET)
        return None

    def reset_failed(
        self, slot: Slot, instance: Instance, fault: Fault, subject: str | None = None
    ) -> None:
        """Count an attempt at a reset; after the last one close the manager and raise."""
        if fault.kind in ("raised", "nan", "shape"):
            self.counts["reset"] += 1
            fault = replace(fault, kind="reset")
        instance.attempts += 1
        if instance.attempts < self.max_retry:
            logger.warning("Trying again: %s", self._flights.report(slot.env_id, fault))
            return
        headline = (
            f"{subject or f'Env {slot.env_id}'} reset has exceeded max retries({self.max_retry}), "
            f"and the latest exception is: {fault.shown}"
        )
        failure = fault.failure(self._flights.report(slot.env_id, fault, headline))
        with closing_errors_noted(failure):
            self.close()
        raise failure

    def close(self) -> None:
        """Close the manager: every process is gone when an error is raised."""
        close = self._close()
        if close is not None:
            close()
