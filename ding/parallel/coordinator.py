"""Tells the services what to do, and keeps the books.

Policy flow: `learn` gives new weights, which are published once the call is over. Data flow:
collectors bring chunks of samples, which go on to the buffer, or to the learner, unread. Task flow:
one call under way per service, and `Balance` between collecting and learning. A service that is
lost is replaced by another incarnation of it; what it had not answered is lost, or sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ding.parallel.backend import Backend, Call, ServiceLostError, ignore
from ding.parallel.feeds import Feed, OnPolicyFeed, ReplayFeed
from ding.parallel.ledger import Ledger
from ding.parallel.saving import Saved, Saving
from ding.parallel.services import (
    Blueprint,
    BufferService,
    CollectorService,
    EvaluatorService,
    LearnerService,
)
from ding.utils.errors import DingError
from ding.utils.limits import Limits

# Seconds between two copies of the learner's state, from which another one would go on.
_STATE_SECONDS = 2.0
_MOST_RESTARTS = 100
_TICK = 0.05

_SERVICES: dict[str, Any] = {
    "learner": LearnerService,
    "buffer": BufferService,
    "evaluator": EvaluatorService,
}


Then = Callable[[Call, Any], None]
"""Takes a call that is over and its small answer."""


def spread_epsilon(eps: float, index: int, n: int) -> float:
    """That of collector `index` of `n`, https://arxiv.org/abs/1803.00933: all of it for the first,
    the eighth power for the last."""
    return eps ** (1 + 7 * index / max(n - 1, 1))


@dataclass(eq=False)
class Worker:
    """A service as the coordinator knows it: busy with one call or idle, replaced when it dies."""

    role: str
    index: int = 0
    incarnation: int = 0
    service: Any = None
    call: Call | None = None
    then: Then | None = None
    lost: Callable[[], None] | None = None

    @property
    def name(self) -> str:
        return f"{self.role}{self.index}" if self.role == "collector" else self.role

    @property
    def idle(self) -> bool:
        return self.call is None


@dataclass(frozen=True, eq=False)
class Weights:
    ref: Any
    version: int
    train_iter: int


@dataclass
class Found:
    """What the last evaluation has shown."""

    stop: bool = False
    returns: list[float] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=lambda: {"history": [], "best": float("-inf")})
    """Of the evaluator, with the history and the best mean."""
    weights: Weights | None = None


class Coordinator:
    def __init__(  # noqa: PLR0913 (all that a run depends on)
        self,
        backend: Backend,
        blueprint: Blueprint,
        command: Any,
        limits: Limits,
        *,
        collector_num: int,
        chunk: int,
        timeouts: Mapping[str, float],
        saved: Saved | None = None,
        on_news: Callable[[Coordinator], None] = lambda _: None,
        on_hung: Callable[[Worker, float], None] = lambda worker, limit: None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """`command` is the policy's command mode; `timeouts` the most seconds of a call, by role.

        `interrupted` is asked whether to leave early.
        """
        self.backend, self._blueprint, self._command = backend, blueprint, command
        self._limits, self._on_news, self._timeouts = limits, on_news, timeouts
        self.policy_cfg = blueprint.cfg.policy
        self.ledger = Ledger() if saved is None else Ledger.from_plain(saved.ledger)
        self.found = Found() if saved is None else Found(**saved.found)
        self._on_hung, self._interrupted = on_hung, interrupted
        self.weights: Weights | None = None
        self._learner_state: Any = None
        self._state_due = time.monotonic() + _STATE_SECONDS
        history = self.found.state["history"]
        self._evaluated_iter = history[-1]["train_iter"] if history else None
        self.collectors = [self._started(Worker("collector", i)) for i in range(collector_num)]
        self.learner = self._started(Worker("learner"))
        self.evaluator = self._started(Worker("evaluator"))
        self.buffer: Worker | None = None
        self._feed: Feed
        if self.policy_cfg.on_policy:
            self._feed = OnPolicyFeed(self)
        else:
            self.buffer = self._started(Worker("buffer"))
            self._feed = ReplayFeed(self, self.buffer, chunk)
        self.saving = Saving(self, blueprint.cfg, limits, saved)

    # --- services ------------------------------------------------------------------------------

    @property
    def workers(self) -> list[Worker]:
        others = [self.learner, self.buffer, self.evaluator]
        return [*self.collectors, *(worker for worker in others if worker is not None)]

    def _started(self, worker: Worker) -> Worker:
        service = _SERVICES.get(worker.role)
        if service is None:
            place = (worker.index, worker.incarnation)
            factory: Any = partial(CollectorService, self._blueprint, *place)
        else:
            factory = partial(service, self._blueprint)
        worker.service = self.backend.spawn(worker.name, factory)
        return worker

    def ask(
        self,
        worker: Worker,
        then: Then,
        method: str,
        *args: Any,
        lost: Callable[[], None] | None = None,
    ) -> None:
        """Call an idle worker; `then` takes the answer, `lost` is called if there is none."""
        assert worker.idle
        worker.call = self.backend.call(worker.service, method, *args)
        worker.then, worker.lost = then, lost

    def _settle(self, worker: Worker) -> None:
        """Take the answer of a call that is over."""
        call, then, lost = worker.call, worker.then, worker.lost
        worker.call = worker.then = worker.lost = None
        assert call is not None
        assert then is not None
        try:
            answer = self.backend.result(call)
        except ServiceLostError:
            if lost is not None:
                lost()
            self._replace(worker)
            return
        then(call, answer)

    def _replace(self, worker: Worker) -> None:
        """Another service in place of one that is gone."""
        times = self.ledger.restarted(worker.role)
        if times > _MOST_RESTARTS:
            raise DingError(
                f"{worker.name} was lost {times} times: something kills it (memory?); its log is "
                f"in {self._blueprint.cfg.exp_name}/log"
            )
        worker.incarnation += 1
        self._started(worker)
        if worker is self.learner:
            self._begin()
        elif worker is self.evaluator and self.found.state["history"]:
            self.ask(worker, ignore, "restore", self.found.state)
        elif worker.role == "buffer":
            self.saving.restore_buffer()

    # --- the loop ------------------------------------------------------------------------------

    def run(self) -> None:
        """Until the goal or a limit is reached, or somebody interrupts it."""
        self._begin()
        self.saving.restore_rest()
        while not self.finished:
            self._feed.dispatch()
            self._evaluate_if_due()
            self.saving.go_on()
            self._turn()
        if self.interrupted:
            self._leave()
        else:
            self._finish()

    def _turn(self) -> None:
        """Wait for an answer, and deal with all that are there."""
        busy = {worker.call: worker for worker in self.workers if worker.call is not None}
        for call in self.backend.wait(list(busy), _TICK):
            self._settle(busy[call])
        for worker in self.workers:
            self._end_if_hung(worker)
        self._on_news(self)

    def _end_if_hung(self, worker: Worker) -> None:
        limit = self._timeouts[worker.role]
        if worker.call is not None and time.monotonic() - worker.call.began > limit:
            self._on_hung(worker, limit)
            self.backend.kill(worker.service)  # Its call is lost then, as if it had died.
            worker.call.began = time.monotonic()

    @property
    def interrupted(self) -> bool:
        return self._interrupted()

    @property
    def finished(self) -> bool:
        reached = self._limits.reached(self.ledger.updates, self.ledger.env_steps)
        return self.found.stop or self.interrupted or reached

    @property
    def pausing(self) -> bool:
        """Whether learner and buffer are wanted as they are, to be saved together."""
        return self.saving.wants_quiet

    @property
    def queued(self) -> int:
        """Chunks that have arrived and wait."""
        return self._feed.queued

    def settings(self, index: int) -> dict[str, Any]:
        """How a collector is to explore from here on."""
        progress = {"learner_step": self.ledger.updates, "envstep": self.ledger.env_steps}
        settings = dict(self._command.get_setting_collect(progress))
        if isinstance(settings.get("eps"), float):
            settings["eps"] = spread_epsilon(settings["eps"], index, len(self.collectors))
        return settings

    # --- weights -------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Let a new learner begin, or go on where the last one was."""
        file, updates = self.saving.learner_file, self.ledger.updates
        how: tuple[Any, ...]
        if self._learner_state is not None:
            how = ("restore", self._learner_state, updates)
        elif file is not None:
            how = ("load", file, updates)
        else:
            how = ("begin", self.policy_cfg.load_path or "")
        self.ask(self.learner, self._publish, *how)

    def learned(self, call: Call, n_update: int, told: Mapping[str, Any]) -> None:
        self.ledger.updates += n_update
        self._publish(call, told)
        if time.monotonic() >= self._state_due:
            self._keep_state()

    def _publish(self, call: Call, told: Mapping[str, Any]) -> None:
        """New weights for all; only of a call that is over, or its loss would spread."""
        self.ledger.version += 1
        self.weights = Weights(call.large, self.ledger.version, told["train_iter"])

    def _keep_state(self) -> None:
        """Have the learner's state where it outlives the learner."""

        def keep(call: Call, _: Any) -> None:
            self._learner_state = call.large
            self._state_due = time.monotonic() + _STATE_SECONDS

        self.ask(self.learner, keep, "state")

    # --- evaluation ----------------------------------------------------------------------------

    def _evaluate_if_due(self) -> None:
        if self.weights is None or not self.evaluator.idle:
            return
        last, freq = self._evaluated_iter, self.policy_cfg.eval.evaluator.eval_freq
        if last is None or self.weights.train_iter - last >= freq:
            self._evaluate(self.weights)

    def _evaluate(self, weights: Weights) -> None:
        before, self._evaluated_iter = self._evaluated_iter, weights.train_iter

        def note(_: Call, told: Mapping[str, Any]) -> None:
            self.found = Found(told["stop"], told["returns"], told["state"], weights)

        def lost() -> None:
            self._evaluated_iter = before

        args = (weights.ref, weights.train_iter, self.ledger.env_steps)
        self.ask(self.evaluator, note, "evaluate", *args, lost=lost)

    # --- end -----------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Leave behind the very policy that reached the goal, or the last one."""
        self._await(lambda: self.learner.idle and self.evaluator.idle)
        while not self.found.stop and self.found.weights is not self.weights:
            assert self.weights is not None
            if self.evaluator.idle:
                self._evaluate(self.weights)
            self._turn()
        last = self.found.weights or self.weights
        assert last is not None
        self.ask(self.learner, ignore, "finish", last.ref, last.train_iter)
        self._await(lambda: self.learner.idle)
        self._save_now()

    def _leave(self) -> None:
        self._await(lambda: self.learner.idle)
        self.ask(self.learner, ignore, "checkpoint")
        self._await(lambda: self.learner.idle)
        self._save_now()

    def _save_now(self) -> None:
        before = self.saving.count
        while self.saving.count == before:
            self.saving.begin()  # again, if a service died over it
            self.saving.go_on()
            self._turn()

    def _await(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._turn()
