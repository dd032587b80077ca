"""A ring with uniform sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ding.worker.buffer.relabelling import Relabel
from ding.worker.buffer.ring import RingBuffer


class NaiveReplayBuffer(RingBuffer):
    """First in, first out; every stored sample is as likely as any other."""

    supports_priority: ClassVar[bool] = False

    config: ClassVar[dict[str, Any]] = dict(
        type="naive",
        # Seconds between two lines about the flow of data in the log.
        periodic_thruput_seconds=60,
    )

    def _flow_seconds(self) -> float:
        return self._cfg.periodic_thruput_seconds

    def sample(
        self,
        batch_size: int,
        cur_learner_iter: int = 0,
        sample_range: slice | None = None,
        replace: bool = False,
        relabel: Relabel | None = None,
    ) -> Sequence[Any] | None:
        """Samples drawn uniformly, or None while there are fewer than that.

        `sample_range` restricts the draw to a slice of the samples in order of age. `relabel` sees
        single steps, before rewards are summed.
        """
        if batch_size == 0:
            return []
        slots = self._drawn_slots(batch_size, sample_range, replace)
        if slots is None:
            return None
        self._sampled += batch_size
        self._log_if_due()
        return self._read(slots, relabel=relabel)

    def _drawn_slots(
        self, batch_size: int, sample_range: slice | None, replace: bool
    ) -> np.ndarray | None:
        count = self._serial - self._oldest
        ages = None if sample_range is None else range(count)[sample_range]
        n = count if ages is None else len(ages)
        if n == 0 or (n < batch_size and not replace):
            return None
        index = draw(self._rng, n, batch_size, replace)
        if ages is not None:
            return self._slots(ages.start + ages.step * index)
        # Among all, any shift of the ages is as good: the filled slots begin at 0 or fill the ring.
        return index

    def update(self, info: Mapping[str, Any]) -> None:
        """Uniform sampling has no priorities to update."""


def draw(rng: np.random.Generator, n: int, size: int, replace: bool) -> np.ndarray:
    """`size` of `n` indices; all subsets (and orders) are equally likely unless `replace`."""
    if size * size <= n or replace:
        # Below 2**53 this is as even as `integers`, at a third of its cost.
        index = (rng.random(size) * n).astype(np.int64)
        if replace or not _repeats(index):
            return index
    return rng.choice(n, size, replace=False)


def _repeats(index: np.ndarray) -> bool:
    ordered = np.sort(index)
    return bool(np.count_nonzero(ordered[1:] == ordered[:-1]))
