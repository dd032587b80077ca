"""How samples come from the collectors to the learner: through a replay buffer, or directly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ding.parallel.backend import Call, ignore
from ding.parallel.ledger import Balance

if TYPE_CHECKING:
    from ding.parallel.coordinator import Coordinator, Worker

# Updates in one call: few calls, and weights that are not old when they are published.
_MOST_UPDATES = 64

Told = Mapping[str, Any]


class Feed(ABC):
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    @property
    def queued(self) -> int:
        """Chunks that have arrived and wait."""
        return 0

    @abstractmethod
    def dispatch(self) -> None:
        """Give those that are idle something to do."""

    def _ask_for_chunk(
        self,
        worker: Worker,
        arrived: Callable[[Call, Told], None],
        method: str,
        *args: Any,
        lost: Callable[[], None] | None = None,
    ) -> None:
        chunks = self._c.ledger.chunks
        chunks.asked += 1

        def note_loss() -> None:
            chunks.lost += 1
            if lost is not None:
                lost()

        self._c.ask(worker, arrived, method, *args, lost=note_loss)


class ReplayFeed(Feed):
    """Off-policy: chunks go into the buffer, batches come out of it."""

    def __init__(self, coordinator: Coordinator, buffer: Worker, chunk: int) -> None:
        super().__init__(coordinator)
        self._buffer = buffer
        policy, n = coordinator.policy_cfg, len(coordinator.collectors)
        self._chunk, self._batch_size = chunk, policy.learn.batch_size
        self._random = policy.random_collect_size
        # Begun anew, a buffer may need more than two chunks of each until a batch can be drawn.
        ahead = max(2 * chunk * n, 2 * self._batch_size)
        rate = policy.learn.update_per_collect / policy.collect.n_sample
        self._balance = Balance(rate, ahead, exempt=self._random)
        if coordinator.ledger.samples:
            self._random = 0
        self._arrived: list[tuple[Call, Told]] = []
        self._drawn: tuple[Call, int] | None = None
        self._starved = False
        self._priorities: list[Any] = []

    @property
    def queued(self) -> int:
        return len(self._arrived)

    def dispatch(self) -> None:
        for worker in self._c.collectors:
            if worker.idle and self.queued < 2 * len(self._c.collectors):
                self._collect(worker)
        if self._c.pausing:
            return
        if self._buffer.idle:
            self._use_buffer()
        if self._drawn is not None and self._c.learner.idle:
            self._learn(*self._drawn)

    def _collect(self, worker: Worker) -> None:
        c, weights = self._c, self._c.weights
        if self._random > 0:
            n = min(self._random, self._chunk)
            self._random -= n
            again = partial(self._still_at_random, n)
            self._ask_for_chunk(worker, self._take, "collect_random", n, lost=again)
        elif weights is not None:
            under_way = c.ledger.chunks.open * self._chunk
            if self._starved or self._balance.may_collect(c.ledger, under_way):
                args = (weights.ref, self._chunk, weights.train_iter, c.settings(worker.index))
                self._ask_for_chunk(worker, self._take, "collect", *args)

    def _still_at_random(self, n: int) -> None:
        self._random += n

    def _take(self, call: Call, told: Told) -> None:
        self._arrived.append((call, told))

    def _use_buffer(self) -> None:
        c = self._c
        if self._priorities:
            priorities, self._priorities = self._priorities, []
            c.ask(self._buffer, ignore, "update", priorities)
        elif self._arrived:
            call, told = self._arrived[0]  # It stays there until it is stored for sure.
            envstep = c.ledger.env_steps + told["env_steps"]
            c.ask(self._buffer, partial(self._stored, told), "add", call.large, envstep)
        elif self._drawn is None and (due := self._balance.updates_due(c.ledger)):
            args = (min(due, _MOST_UPDATES), self._batch_size, c.ledger.updates)
            c.ask(self._buffer, self._take_batches, "draw", *args)

    def _stored(self, told: Told, call: Call, answer: Any) -> None:
        self._arrived.pop(0)
        self._c.ledger.store(told)

    def _take_batches(self, call: Call, told: Told) -> None:
        self._starved = not told["batches"]
        if self._starved:
            self._balance.forgive(self._c.ledger)
        else:
            self._drawn = (call, told["batches"])

    def _learn(self, drawn: Call, n: int) -> None:
        c, self._drawn = self._c, None

        def learned(call: Call, told: Told) -> None:
            self._priorities += told["priorities"]
            c.learned(call, n, told)

        c.ask(c.learner, learned, "learn", c.ledger.env_steps, drawn.large)


class OnPolicyFeed(Feed):
    """All collectors bring their share with the same weights; then one update of them together."""

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(coordinator)
        n_sample, n = coordinator.policy_cfg.collect.n_sample, len(coordinator.collectors)
        self._shares = [n_sample // n + (i < n_sample % n) for i in range(n)]
        self._version: int | None = None
        self._parts: dict[int, tuple[Call, Told]] = {}

    def dispatch(self) -> None:
        c, weights = self._c, self._c.weights
        if weights is None or not c.learner.idle:
            return
        if weights.version != self._version:
            c.ledger.chunks.stale += len(self._parts)
            self._version, self._parts = weights.version, {}
        if len(self._parts) == len(c.collectors):
            if not c.pausing:
                self._learn()
            return
        for worker in c.collectors:
            if worker.idle and worker.index not in self._parts:
                args = (
                    weights.ref,
                    self._shares[worker.index],
                    weights.train_iter,
                    c.settings(worker.index),
                )
                take = partial(self._take, worker.index, weights.version)
                self._ask_for_chunk(worker, take, "collect", *args)

    def _take(self, index: int, version: int, call: Call, told: Told) -> None:
        if version == self._version:
            self._parts[index] = (call, told)
        else:
            self._c.ledger.chunks.stale += 1

    def _learn(self) -> None:
        c, parts = self._c, [self._parts[i] for i in sorted(self._parts)]
        ledger, before, self._parts = c.ledger, c.ledger.updates, {}

        def learned(call: Call, told: Told) -> None:
            for _, part in parts:
                ledger.store(part)
            c.learned(call, told["train_iter"] - before, told)

        def lost() -> None:
            ledger.chunks.lost += len(parts)

        envstep = ledger.env_steps + sum(told["env_steps"] for _, told in parts)
        refs = [part.large for part, _ in parts]
        c.ask(c.learner, learned, "learn_together", envstep, *refs, lost=lost)
