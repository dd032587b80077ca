"""Batches: what is learned from after a collect.

`ReplayBatches` draws them from a buffer, or from a `Mixture` of buffers; `CollectedBatches` hands
on what came. Functions that relabel rewards or goals see single steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ding.utils.batch import Batch, Rows, columns_of, concat, length
from ding.utils.errors import ConfigError
from ding.utils.seed import new_generator
from ding.worker.buffer import IBuffer
from ding.worker.buffer.relabelling import Chain, Drawn, Relabel, relabel_options


class HasTrainIter(Protocol):
    """A learner, or whatever knows how many updates there were."""

    train_iter: int


@runtime_checkable
class Observer(Protocol):
    """Part of a run that learns from samples as they come in."""

    def observe(self, samples: Batch) -> None: ...


def _observers(parts: Sequence[Any]) -> list[Observer]:
    return [part for part in parts if isinstance(part, Observer)]


class ReplayBatches:
    """Off-policy: samples go into a buffer, batches are drawn from it.

    The services of a parallel run call `add`, `draw` and `feed_back` one by one.
    """

    def __init__(
        self,
        buffer: IBuffer | Mixture,
        batch_size: int,
        *,
        updates: int = 1,
        prioritised: bool = False,
        relabel: Sequence[Relabel] = (),
        pretrain: int = 0,
    ) -> None:
        """`updates` batches are drawn after each collect, `pretrain` before the first.

        `relabel` functions see single steps.
        """
        self.pretrain = pretrain
        self.buffer, self._batch_size, self._updates = buffer, batch_size, updates
        self._prioritised = prioritised
        self._options = relabel_options(relabel)
        self._observers = _observers(relabel)

    @classmethod
    def of(
        cls,
        buffer: IBuffer | Mixture,
        policy_cfg: Any,
        relabel: Sequence[Relabel] = (),
        pretrain: int = 0,
    ) -> ReplayBatches:
        learn = policy_cfg.learn
        return cls(
            buffer,
            learn.batch_size,
            updates=learn.update_per_collect,
            prioritised=policy_cfg.get("priority", False),
            relabel=relabel,
            pretrain=pretrain,
        )

    def add(self, samples: Sequence[Any], envstep: int) -> None:
        self.buffer.push(samples, envstep)
        for part in self._observers:
            part.observe(columns_of(samples))

    def draw(self, n_batch: int, learner: HasTrainIter) -> Iterator[Sequence[Any]]:
        """Up to `n_batch` batches, fewer while there are not enough samples."""
        for _ in range(n_batch):
            batch = self.buffer.sample(self._batch_size, learner.train_iter, **self._options)
            if batch is None:
                return
            yield batch

    def after(
        self, samples: Sequence[Any], envstep: int, learner: HasTrainIter
    ) -> Iterator[Sequence[Any]]:
        """Batches to learn from now that these samples have come."""
        self.add(samples, envstep)
        return self.draw(self._updates, learner)

    def feed_back(self, priority_info: Mapping[str, Any]) -> None:
        """Tell the buffer how surprising the samples of an update were, if that counts."""
        if self._prioritised and priority_info:
            self.buffer.update(priority_info)


ADVANTAGES = ("advantage", "return")
"""Columns that follow from rewards; policies compute them where they are missing."""


class CollectedBatches:
    """On-policy: all that a collect brought is learned from, once."""

    def __init__(self, relabel: Sequence[Relabel] = ()) -> None:
        self._relabel = Chain(relabel) if relabel else None
        self._observers = _observers(relabel)
        self._rng = new_generator()

    def after(
        self, samples: Sequence[Any], envstep: int, learner: HasTrainIter
    ) -> Iterator[Sequence[Any]]:
        return iter((self.relabelled(samples),))

    def relabelled(self, samples: Sequence[Any]) -> Sequence[Any]:
        """The samples with other rewards, without advantages of the former ones."""
        if self._relabel is None:
            return samples
        columns = columns_of(samples)
        for part in self._observers:
            part.observe(columns)
        steps = {name: column for name, column in columns.items() if name not in ADVANTAGES}
        exist = np.ones((length(columns), 1), bool)
        return Rows(self._relabel.relabel(Drawn(steps, exist, self._rng, "collected")))

    def state_dict(self) -> dict[str, Any]:
        return {"rng": self._rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._rng.bit_generator.state = state["rng"]

    def feed_back(self, priority_info: Mapping[str, Any]) -> None:
        """Nothing is kept, so nothing has a priority."""


Shares = Callable[[int], Mapping[str, float]]
"""Share of each buffer in the batch of an update, by its number."""


class Mixture:
    """Draws of given shares from several buffers, e.g. {'agent': 0.75, 'expert': 0.25}.

    Stands in for a buffer: new samples go to the first one. Rows of a batch come in the order of
    the buffers; `source` says by number which one a row is from.
    """

    def __init__(
        self, buffers: Mapping[str, IBuffer], shares: Mapping[str, float] | Shares
    ) -> None:
        """`shares`: the same for all updates, or a schedule."""
        self._buffers = dict(buffers)
        self._shares: Shares = shares if callable(shares) else lambda train_iter: shares
        first = self._shares(0)
        if buffers.keys() != first.keys() or not buffers:
            raise ConfigError(
                f"a mixture of {sorted(buffers)} needs a share of each, got {sorted(first)}"
            )
        if min(first.values()) < 0 or abs(sum(first.values()) - 1) > 1e-6:
            raise ConfigError(f"shares of a mixture must not be negative and add up to 1: {first}")

    def push(self, data: Any, cur_collector_envstep: int = 0) -> None:
        next(iter(self._buffers.values())).push(data, cur_collector_envstep)

    def count(self) -> int:
        return sum(buffer.count() for buffer in self._buffers.values())

    def sample(
        self, batch_size: int, cur_learner_iter: int = 0, **options: Any
    ) -> Sequence[Any] | None:
        """One batch, or None while one of the buffers has too few samples."""
        drawn = []
        counts = self._counts(batch_size, self._shares(cur_learner_iter))
        for number, (buffer, count) in enumerate(zip(self._buffers.values(), counts, strict=True)):
            if not count:
                continue
            part = buffer.sample(count, cur_learner_iter, **options)
            if part is None:
                return None
            drawn.append({**columns_of(part), "source": np.full(count, number)})
        shared = set.intersection(*(set(part) for part in drawn))
        return Rows(concat([{k: part[k] for k in drawn[0] if k in shared} for part in drawn]))

    def update(self, info: Mapping[str, Any]) -> None:
        """New priorities of a whole batch, each to the buffer that its row came from."""
        for number, buffer in enumerate(self._buffers.values()):
            own = np.asarray(info["source"]) == number
            if own.any():
                buffer.update({name: np.asarray(column)[own] for name, column in info.items()})

    def _counts(self, total: int, shares: Mapping[str, float]) -> list[int]:
        """Rows of each buffer that add up to `total`, by the largest remainders."""
        exact = [shares[name] * total for name in self._buffers]
        counts = [int(x) for x in exact]
        order = sorted(range(len(exact)), key=lambda i: counts[i] - exact[i])
        for i in order[: total - sum(counts)]:
            counts[i] += 1
        return counts
