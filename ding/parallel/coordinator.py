"""Coordinator: assigns work to the services of a parallel run and keeps the ledger.

Policy flow: `learn` gives new weights, which are published once the call is over. Data flow:
collectors bring chunks of samples, which go on to the buffer, or to the learner, unread. Task flow:
one call under way per service, and `Balance` between collecting and learning. A service that is
lost is replaced by another incarnation of it; what it had not answered is lost, or sent again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ding.parallel.backend import Backend, Call, ServiceLostError, ignore
from ding.parallel.checkpointing import Checkpointing, Saved
from ding.parallel.data_flow import Feed, OnPolicyFeed, ReplayFeed
from ding.parallel.fleet import Autoscaler, Fleet
from ding.parallel.ledger import Ledger
from ding.parallel.worker_pool import Worker, WorkerPool
from ding.pipeline.blueprint import Blueprint
from ding.pipeline.budget import check_learned
from ding.pipeline.evaluation import Evaluated
from ding.pipeline.progress import TRAINING_EPISODES
from ding.utils.limits import Limits
from ding.worker import evaluation_due
from ding.worker.commander import collect_settings

# Seconds between two copies of the learner's state, from which another one would go on.
_STATE_SECONDS = 2.0
# Who interrupts a run waits so long for a learner that is away.
_AWAY_SECONDS = 5.0


class _LearnerAwayError(Exception):
    """There is none that could be saved."""


def spread_epsilon(eps: float, index: int, n: int) -> float:
    """That of collector `index` of `n`, https://arxiv.org/abs/1803.00933: all of it for the first,
    the eighth power for the last."""
    return eps ** (1 + 7 * index / max(n - 1, 1))


@dataclass(frozen=True, eq=False)
class Weights:
    ref: Any
    version: int
    train_iter: int


class Coordinator:
    def __init__(  # noqa: PLR0913 (all that a run depends on)
        self,
        backend: Backend,
        blueprint: Blueprint,
        command: Any,
        limits: Limits,
        fleet: Fleet,
        *,
        chunk: int,
        saved: Saved | None = None,
        on_news: Callable[[Coordinator], None] = lambda _: None,
        on_hung: Callable[[Worker, float], None] = lambda worker, limit: None,
        tell: Callable[[str], None] = lambda text: None,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """`command` is the policy's command mode; `chunk` the samples of one collect.

        `interrupted` is asked whether to leave early.
        """
        self.backend, self._blueprint, self._command = backend, blueprint, command
        self._limits, self._on_news, self._tell = limits, on_news, tell
        self.policy_cfg, self.env_cfg, self.fleet = blueprint.cfg.policy, blueprint.cfg.env, fleet
        self.ledger = Ledger() if saved is None else Ledger.from_plain(saved.ledger)
        self.found = Evaluated() if saved is None else Evaluated(**saved.found)
        self.training_returns: deque[float] = deque(maxlen=TRAINING_EPISODES)
        """Returns of the last episodes that were collected."""
        self._interrupted = interrupted
        self.weights: Weights | None = None
        self._learner_state: Any = None
        self._away_since: float | None = None
        self._state_due = time.monotonic() + _STATE_SECONDS
        self._found_with: Weights | None = None
        """Weights of that evaluation, if it was in this session."""
        history = self.found.history
        self._evaluated_iter = int(history[-1]["train_iter"]) if history else -1
        self.pool = WorkerPool(
            backend, blueprint, self.ledger, fleet.timeouts, self._on_replaced, on_hung
        )
        self.ask = self.pool.ask
        self.learner = self.pool.hire("learner", fleet.learner_num)
        self._autoscaler = Autoscaler(self.pool, self.learner, fleet, blueprint.cfg, tell)
        self._autoscaler.look()
        self.evaluator = self.pool.hire("evaluator")
        self.buffer: Worker | None = None
        self._feed: Feed
        if self.policy_cfg.on_policy:
            self._feed = OnPolicyFeed(self)
        else:
            self.buffer = self.pool.hire("buffer")
            self._feed = ReplayFeed(self, self.buffer, chunk)
        self.saving = Checkpointing(self, blueprint.cfg, limits, saved)
        self._best_rewards_due = False
        """A better evaluation has come in since learned rewards were written."""

    @property
    def collectors(self) -> list[Worker]:
        return self.pool.collectors

    def _on_replaced(self, worker: Worker) -> None:
        """Tell a new service where the one before it was."""
        if worker is self.learner:
            self.weights = None  # Collectors wait: what they would bring could not be learned.
            self._begin()
        elif worker.role == "evaluator" and self.found.history:
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
            if self._best_rewards_due and self._rewards_holder.idle:
                self._save_rewards("best")
            self.saving.go_on()
            self._turn()
        try:
            self._finish() if self.is_done else self._leave()
        except _LearnerAwayError:
            self._fall_back()

    def _turn(self) -> None:
        """Wait for an answer, and deal with all that are there."""
        self.pool.turn()
        self._autoscaler.look()
        self._on_news(self)

    @property
    def interrupted(self) -> bool:
        return self._interrupted()

    @property
    def is_done(self) -> bool:
        """Whether the goal or a limit is reached."""
        if self.found.stop or self.ledger.updates >= self._limits.train_iter:
            return True
        learned = self.learner.idle and not self._feed.has_due
        return self.limits_reached and learned

    @property
    def limits_reached(self) -> bool:
        return self._limits.reached(self.ledger.updates, self.ledger.env_steps)

    @property
    def finished(self) -> bool:
        return self.is_done or self.interrupted

    @property
    def pausing(self) -> bool:
        """Whether learner and buffer are wanted as they are, to be saved together."""
        return self.saving.wants_quiet

    @property
    def queued(self) -> int:
        """Chunks that have arrived and wait."""
        return self._feed.queued

    @property
    def phase(self) -> str:
        """Phase of the run: the work that most services are busy with."""
        if self.weights is None:
            return "waiting for the learner"
        if self.pausing:
            return "saving"
        if self.is_done:
            return "saving" if self._found_with is self.weights else "evaluating"
        return "warm-up" if self._feed.warms_up else "training"

    def note_stored(self, told: Mapping[str, Any]) -> None:
        """A chunk of a collector that said this of it can be learned from."""
        self.ledger.store(told)
        self.training_returns.extend(told["returns"])

    def settings(self, index: int) -> dict[str, Any]:
        """How a collector is to explore from here on."""
        ledger = self.ledger
        settings = collect_settings(self._command, ledger.updates, ledger.env_steps)
        if isinstance(settings.get("eps"), float):
            settings["eps"] = spread_epsilon(settings["eps"], index, len(self.collectors))
        return settings

    # --- weights -------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Let a new learner begin, or go on where the last one was."""
        if self.learner.size > 1:
            self.ask(self.learner, self._meet, "open_group")
        else:
            self._go_on()

    def _meet(self, _: Call, told: Mapping[str, Any]) -> None:
        def go_on(call: Call, told: Any) -> None:
            self._go_on()

        self.ask(self.learner, go_on, "join_group", told["meeting"])

    def _go_on(self) -> None:
        file, updates = self.saving.learner_file, self.ledger.updates
        how: tuple[Any, ...]
        if self._learner_state is not None:
            how = ("restore", self._learner_state, updates)
        elif file is not None:
            how = ("load", file, updates)
        else:
            how = ("begin", self.policy_cfg.load_path or "")
        self.ask(self.learner, self.publish, *how)

    def learned(self, call: Call, n_update: int, told: Mapping[str, Any]) -> None:
        self.ledger.updates += n_update
        self.publish(call, told)
        if time.monotonic() >= self._state_due:
            self._keep_state()

    def publish(self, call: Call, told: Mapping[str, Any]) -> None:
        """New weights for all; only of a call that is over, or its loss would spread."""
        self.ledger.version += 1
        self.weights = Weights(self.backend.held(call), self.ledger.version, told["train_iter"])

    def _keep_state(self) -> None:
        """Have the learner's state where it outlives the learner."""

        def keep(call: Call, _: Any) -> None:
            self._learner_state = self.backend.held(call)
            self._state_due = time.monotonic() + _STATE_SECONDS

        self.ask(self.learner, keep, "state")

    # --- evaluation ----------------------------------------------------------------------------

    def _evaluate_if_due(self) -> None:
        if self.weights is None or not self.evaluator.idle or self._feed.warms_up:
            return
        freq = self.policy_cfg.eval.evaluator.eval_freq
        if evaluation_due(self.weights.train_iter, self._evaluated_iter, freq):
            self._evaluate(self.weights)

    def _evaluate(self, weights: Weights) -> None:
        before, self._evaluated_iter = self._evaluated_iter, weights.train_iter

        def note(_: Call, found: Evaluated) -> None:
            self.found, self._found_with = found, weights
            self._best_rewards_due = found.is_best

        def lost(_: ServiceLostError) -> None:
            self._evaluated_iter = before

        args = (weights.ref, self.ledger.env_steps)
        self.ask(self.evaluator, note, "evaluate", *args, lost=lost)

    @property
    def _rewards_holder(self) -> Worker:
        """Service that relabels, with what it has learned for that."""
        return self.buffer or self.learner

    def _save_rewards(self, name: str) -> None:
        """Write learned rewards, if there are any, as those of the best or the last policy."""
        self._best_rewards_due = False
        if self._blueprint.cfg.get("reward_model") is not None:
            self.ask(self._rewards_holder, ignore, "save_parts", name)

    # --- end -----------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Leave behind the very policy that reached the goal, or the last one."""
        if not (self.ledger.updates or self.found.stop):
            n_stored = None if self.buffer is None else self.ledger.samples
            check_learned(self.policy_cfg, self._limits, self.ledger.env_steps, n_stored)
        self._await(lambda: self.learner.idle and self.evaluator.idle)
        while not self.found.stop and self._found_with is not self.weights:
            if self.weights is not None and self.evaluator.idle:
                self._evaluate(self.weights)
            self._last_turn()
        last = self._found_with or self.weights
        assert last is not None
        self.ask(self.learner, ignore, "finish", last.ref)
        for name in ["best"] * self._best_rewards_due + ["last"]:
            self._await(lambda: self._rewards_holder.idle)
            self._save_rewards(name)
        self._await(lambda: self.learner.idle and self._rewards_holder.idle)
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
            self._last_turn()

    def _await(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._last_turn()

    def _last_turn(self) -> None:
        self._turn()
        if self.learner.has_answered or not self.interrupted:
            self._away_since = None
        elif self._away_since is None:
            self._away_since = time.monotonic()
        elif time.monotonic() - self._away_since > _AWAY_SECONDS:
            raise _LearnerAwayError

    def _fall_back(self) -> None:
        """To the last checkpoint: what came after it was lost with the learner.

        Without one there is nothing to leave behind: the interrupt itself is what is told.
        """
        saved = self.saving.last
        if saved is None:
            raise KeyboardInterrupt
        self._tell(f"no learner came back in {_AWAY_SECONDS:g} s: the last checkpoint stays")
        self.ledger, self.found = Ledger.from_plain(saved.ledger), Evaluated(**saved.found)
