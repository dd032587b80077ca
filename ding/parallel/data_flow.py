"""Data flow: samples go from collectors to the learner through a replay buffer, or directly."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from ding.parallel.backend import AnswerLostError, Call, ServiceLostError, ignore
from ding.parallel.ledger import Balance
from ding.parallel.worker_pool import Lost, Worker

if TYPE_CHECKING:
    from ding.parallel.coordinator import Coordinator, Weights

# Updates in one call: few calls, and weights that are not old when they are published.
_MOST_UPDATES = 64
# Chunks in one call: a buffer that takes them one by one takes a few hundred in a second.
_MOST_CHUNKS = 64

Told = Mapping[str, Any]


class Feed(ABC):
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    @property
    def queued(self) -> int:
        """Chunks that have arrived and wait."""
        return 0

    @property
    def has_due(self) -> bool:
        """Whether stored samples are still to be learned from."""
        return False

    @property
    def warms_up(self) -> bool:
        """Whether random samples are still collected, or their statistics not yet published."""
        return False

    @abstractmethod
    def dispatch(self) -> None:
        """Give those that are idle something to do."""

    def _ask_for_chunk(
        self,
        worker: Worker,
        arrived: Callable[[Call, Told], None],
        method: str,
        *args: Any,
        lost: Lost | None = None,
    ) -> None:
        chunks = self._c.ledger.chunks
        chunks.asked += 1

        def note_loss(why: ServiceLostError) -> None:
            chunks.lost += 1
            if lost is not None:
                lost(why)

        self._c.ask(worker, arrived, method, *args, lost=note_loss)


class ReplayFeed(Feed):
    """Off-policy: chunks go into the buffer, batches come out of it."""

    def __init__(self, coordinator: Coordinator, buffer: Worker, chunk: int) -> None:
        super().__init__(coordinator)
        self._buffer = buffer
        policy = coordinator.policy_cfg
        self._chunk, self._batch_size = chunk, policy.learn.batch_size
        self._random = policy.random_collect_size
        self._pretrain = (policy.other.get("demonstrations") or {}).get("pretrain", 0)
        rate = policy.learn.update_per_collect, policy.collect.n_sample
        self._balance = Balance(*rate, exempt=self._random, pretrain=self._pretrain)
        if coordinator.ledger.samples:
            self._random = 0
        self._arrived: deque[tuple[Call, Told]] = deque()
        self._one_by_one = 0
        """Chunks to be added alone, since one of them is gone."""
        self._drawn: tuple[Call, int] | None = None
        self._starved = False
        self._priorities: list[Any] = []
        self._statistics: list[Any] = []
        """Gathered with what is stored, for the learner's normalisers."""
        self._merging = False

    @property
    def queued(self) -> int:
        return len(self._arrived)

    def dispatch(self) -> None:
        idle, most = self._c.pool.idle, 2 * len(self._c.collectors)
        while idle and self.queued < most and self._collect(next(iter(idle))):
            pass
        if self._c.pausing:
            return
        if self._buffer.idle:
            self._use_buffer()
        if self._drawn is not None and self._c.learner.idle:
            self._learn(*self._drawn)
        elif self._statistics and self._c.learner.idle and not self.has_due:
            self._merge()

    def _collect(self, worker: Worker) -> bool:
        """Ask for a chunk, if one is wanted."""
        c, weights = self._c, self._c.weights
        if c.ledger.updates < self._pretrain:
            return False
        if self._random > 0:
            n = min(self._random, self._chunk)
            self._random -= n
            again = partial(self._still_at_random, n)
            self._ask_for_chunk(worker, self._take, "collect_random", n, lost=again)
            return True
        under_way = c.ledger.chunks.open * self._chunk
        starved = self._starved and not self.queued
        unmerged = c.fleet.in_step and (under_way > 0 or self._merging or bool(self._statistics))
        early = not (starved or self._balance.may_collect(c.ledger, under_way, self._ahead))
        if weights is None or unmerged or early or c.limits_reached:
            return False
        args = (weights.ref, self._chunk, c.settings(worker.index))
        self._ask_for_chunk(worker, partial(self._take_of, weights), "collect", *args)
        return True

    @property
    def _ahead(self) -> int:
        """Samples that may be collected before what is due for the others is learned."""
        if self._c.fleet.in_step:
            return 1
        # Begun anew, a buffer may need more than two chunks of each until a batch can be drawn.
        return max(2 * self._chunk * len(self._c.collectors), 2 * self._batch_size)

    def _still_at_random(self, n: int, why: ServiceLostError) -> None:
        self._random += n

    def _take(self, call: Call, told: Told) -> None:
        self._arrived.append((call, told))

    def _take_of(self, weights: Weights, call: Call, told: Told) -> None:
        ledger = self._c.ledger
        if ledger.lag.note(ledger.updates - weights.train_iter) > self._c.fleet.max_policy_lag:
            ledger.chunks.stale += 1
        else:
            self._take(call, told)

    def _use_buffer(self) -> None:
        c = self._c
        if self._priorities:
            priorities, self._priorities = self._priorities, []
            c.ask(self._buffer, ignore, "update", priorities)
        elif self._drawn is None and (due := self._balance.updates_due(c.ledger)):
            # Before what has arrived: that never ends where there are many collectors.
            args = (min(due, _MOST_UPDATES), c.ledger.updates)
            c.ask(self._buffer, self._take_batches, "draw", *args)
        elif self._arrived:
            self._add(1 if self._one_by_one else _MOST_CHUNKS)

    def _add(self, most: int) -> None:
        """Store what has arrived; it stays here until that is sure."""
        parts = list(islice(self._arrived, most))
        envstep = self._c.ledger.env_steps + sum(told["env_steps"] for _, told in parts)
        refs, n = [call.large for call, _ in parts], len(parts)

        def stored(call: Call, answer: Any) -> None:
            self._one_by_one = max(self._one_by_one - n, 0)
            for _ in range(n):
                told = self._arrived.popleft()[1]
                self._c.note_stored(told)
                if told["statistics"]:
                    self._statistics.append(told["statistics"])
            self._starved = False

        def lost(why: ServiceLostError) -> None:
            if isinstance(why, AnswerLostError):
                self._drop_lost(n)

        self._c.ask(self._buffer, stored, "add", envstep, *refs, lost=lost)

    def _drop_lost(self, n: int) -> None:
        """One of `n` chunks was on a machine that is gone, and can't be sent again."""
        if n > 1:
            self._one_by_one = n
            return
        self._arrived.popleft()
        self._one_by_one = max(self._one_by_one - 1, 0)
        self._c.ledger.chunks.lost += 1

    def _take_batches(self, call: Call, told: Told) -> None:
        self._starved = not told["batches"]
        if self._starved:
            self._balance.forgive(self._c.ledger)
        else:
            self._drawn = (call, told["batches"])

    @property
    def has_due(self) -> bool:
        """Whether stored samples are still to be learned from."""
        return self._drawn is not None or self._balance.updates_due(self._c.ledger) > 0

    @property
    def warms_up(self) -> bool:
        ledger, size = self._c.ledger, self._c.policy_cfg.random_collect_size
        unpublished = self._merging or bool(self._statistics)
        if ledger.updates < self._pretrain:
            return True
        begins = ledger.updates == self._pretrain
        return begins and (ledger.samples < size or unpublished)

    def _merge(self) -> None:
        """Publish statistics that no update takes along."""
        statistics, self._statistics, self._merging = self._statistics, [], True

        def merged(call: Call, told: Told) -> None:
            self._merging = False
            self._c.publish(call, told)

        def lost(_: ServiceLostError) -> None:
            self._merging = False
            self._statistics = statistics + self._statistics

        self._c.ask(self._c.learner, merged, "merge", statistics, lost=lost)

    def _learn(self, drawn: Call, n: int) -> None:
        c, self._drawn = self._c, None
        statistics, self._statistics = self._statistics, []

        def learned(call: Call, told: Told) -> None:
            self._priorities += told["priorities"]
            c.learned(call, n, told)

        def lost(_: ServiceLostError) -> None:
            self._statistics = statistics + self._statistics

        args = (c.ledger.env_steps, statistics, drawn.large)
        c.ask(c.learner, learned, "learn", *args, lost=lost)


class OnPolicyFeed(Feed):
    """Each round, shares of a collect with the same weights; then one update of them together."""

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(coordinator)
        collect, env = coordinator.policy_cfg.collect, coordinator.env_cfg
        self._of_episodes = collect.get("n_episode") is not None
        self._n = collect.n_episode if self._of_episodes else collect.n_sample
        # Every env plays one episode at least.
        self._least = env.collector_env_num if self._of_episodes else 1
        self._version: int | None = None
        self._open: dict[int, int] = {}
        """Shares of this round that nobody works on: how much, by number."""
        self._shares = 0
        self._parts: dict[int, tuple[Call, Told]] = {}
        """Shares of this round that have arrived."""

    def dispatch(self) -> None:
        c, weights = self._c, self._c.weights
        if weights is None or not c.learner.idle or not c.collectors:
            return
        if weights.version != self._version:
            self._begin_round(weights.version)
        if len(self._parts) == self._shares:
            if not c.pausing:
                self._learn()
            return
        while self._open and c.pool.idle:
            self._collect(next(iter(c.pool.idle)), weights)

    def _begin_round(self, version: int) -> None:
        self._c.ledger.chunks.stale += len(self._parts)
        shares = max(min(len(self._c.collectors), self._n // self._least), 1)
        each, more = divmod(self._n, shares)
        self._open = {i: each + (i < more) for i in range(shares)}
        self._version, self._parts, self._shares = version, {}, shares

    def _collect(self, worker: Worker, weights: Weights) -> None:
        share = min(self._open)
        n = self._open.pop(share)
        take = partial(self._take, share, weights.version)

        def lost(_: ServiceLostError) -> None:
            if weights.version == self._version:
                self._open[share] = n

        method = "collect_episodes" if self._of_episodes else "collect"
        args = (weights.ref, n, self._c.settings(worker.index))
        self._ask_for_chunk(worker, take, method, *args, lost=lost)

    def _take(self, share: int, version: int, call: Call, told: Told) -> None:
        if version == self._version:
            self._parts[share] = (call, told)
        else:
            self._c.ledger.chunks.stale += 1

    def _learn(self) -> None:
        c, parts = self._c, [self._parts[i] for i in sorted(self._parts)]
        ledger, before, self._parts = c.ledger, c.ledger.updates, {}

        def learned(call: Call, told: Told) -> None:
            for _, part in parts:
                c.note_stored(part)
                ledger.lag.note(0)
            c.learned(call, told["train_iter"] - before, told)

        def lost(_: ServiceLostError) -> None:
            ledger.chunks.lost += len(parts)
            self._version = None  # Another round, with the same weights if the learner lives.

        envstep = ledger.env_steps + sum(told["env_steps"] for _, told in parts)
        statistics = [told["statistics"] for _, told in parts if told["statistics"]]
        refs = [part.large for part, _ in parts]
        c.ask(c.learner, learned, "learn_together", envstep, statistics, *refs, lost=lost)
