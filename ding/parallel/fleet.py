"""Fleet: how many workers a run asks for, and an autoscaler that fits them to the room there is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ding.parallel.backend import Order
from ding.parallel.worker_pool import Worker, WorkerPool

_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Fleet:
    """How many of what, how long one may take to answer, and how old samples may be."""

    collector_num: int
    timeouts: dict[str, float]
    """Seconds by role."""
    learner_num: int = 1
    max_policy_lag: float = float("inf")
    """Updates since the weights that a chunk was collected with; older ones are not learned."""
    head_start: bool = True
    """Train in this process until the others have started."""
    dashboard: bool = False
    """Have Ray show its own pages, on this machine alone."""
    in_step: bool = False
    """Collect only when all is learned, as serial runs do."""


class Autoscaler:
    """Fits the collectors to the room that there is, and carries out orders from outside."""

    def __init__(
        self, pool: WorkerPool, learner: Worker, fleet: Fleet, cfg: Any, tell: Callable[[str], None]
    ) -> None:
        self._pool, self._learner, self._fleet = pool, learner, fleet
        self._batch_size, self._tell = cfg.policy.learn.batch_size, tell
        self._most: int | None = None
        """Collectors that may be used of all that there is room for."""
        self._due = 0.0
        self._warned: tuple[int | None, int | None] | None = None

    def look(self) -> None:
        """Now and then: who came, who left, what is wanted."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _LOOK_SECONDS
        for order in self._pool.backend.orders():
            self._obey(order)
        self._fit()

    def _fit(self) -> None:
        pool, room = self._pool, self._pool.backend.room("collector")
        if room is None:
            pool.wanted = self._most or self._fleet.collector_num
        else:
            pool.wanted = room if self._most is None else min(room, self._most)
        for _ in range(pool.wanted - len(pool.collectors)):
            pool.hire("collector")
        # Of those too many, lost ones are dismissed when that is noticed; these never came.
        waiting = [worker for worker in pool.collectors if not worker.has_answered]
        for worker in waiting[: max(len(pool.collectors) - pool.wanted, 0)]:
            pool.dismiss(worker)
        self._warn(room, pool.backend.room("learner"))

    def _warn(self, collectors: int | None, learners: int | None) -> None:
        """Tell once what is missing, and again when that changes."""
        if (collectors, learners) == self._warned:
            return
        self._warned = (collectors, learners)
        if learners is not None and learners < self._learner.size:
            self._tell(
                f"room for {learners} of {self._learner.size} learners: waiting for "
                "ding -m dist --module learner"
            )
        if collectors is not None and collectors < self._fleet.collector_num:
            self._tell(
                f"room for {collectors} of {self._fleet.collector_num} collectors: going on; more "
                "may join with ding -m dist --module collector"
            )

    # --- orders --------------------------------------------------------------------------------

    def _obey(self, order: Order) -> None:
        self._tell(f"told to {order.words}")
        if order.what == "restart":
            self._restart(order)
        elif order.role == "learner":
            sign = 1 if order.what == "add" else -1
            self._resize_learner(self._learner.size + sign * order.number)
        else:
            self._resize_collectors(order)

    def _restart(self, order: Order) -> None:
        workers = [self._learner] if order.role == "learner" else list(self._pool.collectors)
        chosen = [worker for worker in workers if order.name in (None, worker.name)]
        if not chosen:
            names = ", ".join(worker.name for worker in workers)
            self._tell(f"there is no {order.role} '{order.name}' to restart, only {names}")
        for worker in chosen:
            self._pool.replace(worker)

    def _resize_learner(self, size: int) -> None:
        if size < 1 or self._batch_size % size:
            self._tell(
                f"the run keeps {self._learner.size} learners: {size} can't share a batch of "
                f"policy.learn.batch_size = {self._batch_size}"
            )
            return
        self._pool.replace(self._learner, size)

    def _resize_collectors(self, order: Order) -> None:
        n = len(self._pool.collectors)
        if order.what == "add":
            self._most = None if self._most is None else self._most + order.number
            if self._pool.backend.room("collector") is None:
                self._most = n + order.number
            return
        self._most = max(n - order.number, 1)
        for worker in self._pool.collectors[self._most :]:
            self._pool.dismiss(worker)
