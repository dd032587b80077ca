"""Worker pool: the services of a run as its coordinator calls, loses and replaces them."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ding.parallel.backend import AnswerLostError, Backend, Call, ServiceLostError
from ding.parallel.ledger import Ledger
from ding.parallel.services import (
    BufferService,
    CollectorService,
    EvaluatorService,
    LearnerService,
)
from ding.pipeline.blueprint import Blueprint
from ding.torch_utils.distributed import GroupError
from ding.utils.errors import DingError

# So many losses without one answer in between: it is not bad luck.
_MOST_IN_A_ROW = 20
_TICK = 0.05
_LOOK_SECONDS = 0.5
# Answers that only say that a service is there: it may die of its work all the same.
_TO_BEGIN = ("open_group", "join_group", "begin", "restore", "load")
# What one learner of several is asked for; everything else is asked of all of them at once.
_OF_ONE = ("open_group", "state", "save", "save_parts", "checkpoint", "finish")

Then = Callable[[Call, Any], None]
"""Takes a call that is over and its small answer."""
Lost = Callable[[ServiceLostError], None]
"""Is told why there is no answer."""


@dataclass(eq=False)
class Worker:
    """Busy with one thing or idle, replaced when it dies. Learners are one worker together."""

    role: str
    index: int = 0
    size: int = 1
    """Services that it consists of."""
    incarnation: int = 0
    services: list[Any] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    """Of the question under way, one of each service that is asked."""
    waiting: set[Call] = field(default_factory=set)
    """Those of them that are not over."""
    answers: dict[Call, Any] = field(default_factory=dict)
    """Of the others."""
    broken: GroupError | None = None
    """What one of several said because another one failed."""
    then: Then | None = None
    lost: Lost | None = None
    losses: int = 0
    """Since it last answered with work done."""
    has_answered: bool = False
    """In this incarnation."""

    @property
    def name(self) -> str:
        return f"{self.role}{self.index}" if self.role == "collector" else self.role

    @property
    def idle(self) -> bool:
        return not self.calls


class WorkerPool:
    """Workers of a run. Each has one call under way at a time."""

    def __init__(
        self,
        backend: Backend,
        blueprint: Blueprint,
        ledger: Ledger,
        timeouts: Mapping[str, float],
        on_replaced: Callable[[Worker], None],
        on_hung: Callable[[Worker, float], None],
    ) -> None:
        """`timeouts`: the most seconds of a call, by role.

        `on_replaced` may ask a worker that begins anew for something first.
        """
        self.backend, self._blueprint, self.ledger = backend, blueprint, ledger
        self._timeouts, self._on_replaced, self._on_hung = timeouts, on_replaced, on_hung
        self.collectors: list[Worker] = []
        self.wanted = 0
        """Collectors that there should be; above that, lost ones are not replaced."""
        self.idle: OrderedDict[Worker, None] = OrderedDict()
        """Collectors with nothing to do; first those that have waited longest."""
        self._open: dict[Call, Worker] = {}
        self._look_due = 0.0

    # --- coming and going ----------------------------------------------------------------------

    def hire(self, role: str, size: int = 1) -> Worker:
        worker = Worker(role, size=size)
        if role == "collector":
            taken = {collector.index for collector in self.collectors}
            worker.index = next(i for i in range(len(taken) + 1) if i not in taken)
            self.collectors.append(worker)
            self.collectors.sort(key=lambda collector: collector.index)
            self.idle[worker] = None
        self._start(worker)
        return worker

    def dismiss(self, collector: Worker) -> None:
        """Do without it; what it works on is lost."""
        self._drop(collector, ServiceLostError(f"{collector.name} was dismissed"))
        self.collectors.remove(collector)
        self.idle.pop(collector, None)

    def replace(self, worker: Worker, size: int | None = None) -> None:
        """Another incarnation of it, also of one that lives."""
        self._drop(worker, ServiceLostError(f"{worker.name} is replaced"))
        worker.size = size or worker.size
        worker.incarnation += 1
        self.ledger.restarted(worker.role)
        self._start(worker)
        self._on_replaced(worker)

    def _start(self, worker: Worker) -> None:
        worker.has_answered = False
        worker.services = [
            self.backend.spawn(name, factory, worker.role)
            for name, factory in self._factories(worker)
        ]

    def _factories(self, worker: Worker) -> Iterator[tuple[str, Callable[[], Any]]]:
        blueprint = self._blueprint
        if worker.role == "collector":
            place = (worker.index, worker.incarnation)
            yield worker.name, partial(CollectorService, blueprint, *place)
        elif worker.role == "learner":
            yield from self._learners(worker)
        else:
            service: Any = BufferService if worker.role == "buffer" else EvaluatorService
            yield worker.name, partial(service, blueprint)

    def _learners(self, worker: Worker) -> Iterator[tuple[str, Callable[[], Any]]]:
        threads = max(self._blueprint.threads // worker.size, 1)  # They may share a machine.
        blueprint, world = replace(self._blueprint, threads=threads), worker.size
        for rank in range(world):
            name = worker.name if world == 1 else f"{worker.name}{rank}"
            yield name, partial(LearnerService, blueprint, rank, world, self.backend.in_threads)

    def _drop(self, worker: Worker, why: ServiceLostError) -> None:
        lost = worker.lost
        self._forget(worker)
        for service in worker.services:
            self.backend.kill(service)
        if lost is not None:
            lost(why)

    def _forget(self, worker: Worker) -> None:
        for call in worker.calls:
            self._open.pop(call, None)
        worker.calls, worker.waiting, worker.answers, worker.broken = [], set(), {}, None
        worker.then = worker.lost = None
        if worker.role == "collector":
            self.idle[worker] = None

    # --- questions and answers -----------------------------------------------------------------

    def ask(
        self, worker: Worker, then: Then, method: str, *args: Any, lost: Lost | None = None
    ) -> None:
        """Call an idle worker; `then` takes the answer, `lost` is called if there is none."""
        assert worker.idle
        asked = worker.services[:1] if method in _OF_ONE else worker.services
        worker.calls = [self.backend.call(service, method, *args) for service in asked]
        worker.waiting = set(worker.calls)
        worker.then, worker.lost = then, lost
        self.idle.pop(worker, None)
        self._open.update(dict.fromkeys(worker.calls, worker))

    def turn(self) -> None:
        """Wait a moment for answers, and deal with all that are there."""
        for call in self.backend.wait(list(self._open), _TICK):
            worker = self._open.pop(call, None)
            if worker is not None:  # Otherwise it went away while others were dealt with.
                self._take(worker, call)
        if time.monotonic() >= self._look_due:
            self._look_due = time.monotonic() + _LOOK_SECONDS
            for worker in set(self._open.values()):
                self._end_if_hung(worker)

    def _take(self, worker: Worker, call: Call) -> None:
        worker.waiting.discard(call)
        try:
            worker.answers[call] = self.backend.result(call)
        except AnswerLostError as error:
            lost = worker.lost
            self._forget(worker)
            if lost is not None:
                lost(error)
            return
        except ServiceLostError as error:
            self._recover(worker, error)
            return
        except GroupError as error:
            worker.broken = error  # Another one knows better what went wrong, if it lives.
        if not worker.waiting:
            self._settle(worker) if worker.broken is None else self._recover(worker, worker.broken)

    def _settle(self, worker: Worker) -> None:
        calls, then = worker.calls, worker.then
        answers = [worker.answers[call] for call in calls]
        self._forget(worker)
        worker.has_answered = True
        if calls[0].method not in _TO_BEGIN:
            worker.losses = 0
        assert then is not None
        then(calls[0], answers[0] if len(answers) == 1 else _together(answers))

    def _recover(self, worker: Worker, error: DingError) -> None:
        worker.losses += 1
        if worker.losses > _MOST_IN_A_ROW:
            raise DingError(
                f"{worker.name} was lost {worker.losses} times in a row: something kills it "
                f"(memory?); its log is in {self._blueprint.cfg.exp_name}/log ({error})"
            )
        if worker.role == "collector" and len(self.collectors) > self.wanted:
            self.dismiss(worker)
        else:
            self.replace(worker)

    def _end_if_hung(self, worker: Worker) -> None:
        limit, now = self._timeouts[worker.role], time.monotonic()
        if any(now - call.began > limit for call in worker.waiting):
            self._on_hung(worker, limit)
            for service in worker.services:
                self.backend.kill(service)  # Its call is lost then, as if it had died.
            for call in worker.waiting:
                call.began = now


def _together(answers: list[Any]) -> Any:
    """Of several learners: what the first one says, with the priorities of all of them."""
    priorities = [one for answer in answers for one in answer.get("priorities", ())]
    return {**answers[0], "priorities": priorities}
