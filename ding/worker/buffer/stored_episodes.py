"""Stored episodes: what precedes and what follows a stored step.

Needs the compiler, unlike the buffers: imported by who looks for other steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ding.utils.batch import Batch
from ding.worker.buffer.link_kernels import distance, walk
from ding.worker.buffer.links import Links
from ding.worker.buffer.store import Store


class StoredEpisodes:
    """Other steps of the episodes that drawn steps belong to."""

    def __init__(self, store: Store, links: Links, oldest: int) -> None:
        self._store, self._links, self._oldest = store, links, oldest

    def left(self, serials: np.ndarray) -> np.ndarray:
        return distance(self._links.next, serials, self._oldest)

    def passed(self, serials: np.ndarray) -> np.ndarray:
        return distance(self._backward, serials, self._oldest)

    def read(self, serials: np.ndarray, ahead: np.ndarray, names: Sequence[str]) -> Batch:
        """Columns of the steps so many ahead; negative ones are before."""
        ahead = np.asarray(ahead, np.int64)
        found = walk(self._links.next, serials, ahead, self._oldest)
        if (ahead < 0).any():
            found = walk(self._backward, found, -ahead, self._oldest)
        slots = found % self._store.size
        if not names:
            return self._store.read(slots)
        return {name: self._store.gather(name, slots) for name in names}

    @property
    def _backward(self) -> np.ndarray:
        assert self._links.previous is not None
        return self._links.previous
