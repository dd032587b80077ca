"""Stacks of frames in which each frame is kept once.

`obs` and `next_obs` are stacks of the last k frames, so successive rows share all but one. A row
keeps the ids of its 2k frames. Frames are found by content, so it does not matter how the rows of
several envs are mixed, where episodes end or how a reset fills the first stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ding.utils.batch import Batch
from ding.utils.errors import ConfigError
from ding.worker.buffer.memory import Blocks, Memory

_SMALLEST = 1024  # bytes of a frame from which ids pay off


def frames_per_stack(columns: Batch, asked: int | None) -> int:
    """k if obs and next_obs of these rows are stacks of k frames, else 0."""
    obs: Any = columns.get("obs")
    next_obs: Any = columns.get("next_obs")
    if asked is not None and asked < 2:
        return 0
    stacked = isinstance(obs, np.ndarray) and isinstance(next_obs, np.ndarray) and obs.ndim > 2
    if asked is not None:
        if not stacked or obs.shape[1] != asked or obs.shape != next_obs.shape:
            shape = obs.shape[1:] if isinstance(obs, np.ndarray) else type(obs).__name__
            raise ConfigError(
                f"frame_stack = {asked}, but obs is {shape}; obs and next_obs must be arrays whose "
                "first axis is the frames"
            )
        return asked
    if not stacked or obs.shape != next_obs.shape or obs.dtype.hasobject or obs.shape[1] < 2:
        return 0
    shifted = obs[0, 0].nbytes >= _SMALLEST and np.array_equal(obs[:, 1:], next_obs[:, :-1])
    return obs.shape[1] if shifted else 0


class FrameStore:
    """`size` rows of obs and next_obs, each of `n_frame` frames."""

    def __init__(
        self, size: int, memory: Memory, n_frame: int, shape: tuple[int, ...], dtype: np.dtype
    ) -> None:
        from ding.worker.buffer.frame_kernels import store_rows

        self._store_rows: Any = store_rows
        self._n_frame, self._shape, self._dtype = n_frame, shape, dtype
        self._nbytes = dtype.itemsize * int(np.prod(shape))
        self._words = -(-self._nbytes // 8)
        self._size = size
        self._blocks = Blocks()
        self._ids = memory.empty((size + 1, 2 * n_frame), np.int32)
        self._ids[:] = -1
        self.ids = self._ids[:size]
        """Of the frames of each row; -1 where no row is."""
        # As many as there could be; memory is taken only by those that come.
        most = 2 * n_frame * (size + 1)
        self.pool = memory.reserve((most, self._words), np.uint64)
        self._info = np.zeros((most, 4), np.int64)
        self._table = np.zeros(1 << most.bit_length(), np.int32)
        self._counts = np.zeros(4, np.int64)
        self._counts[2] = 1  # at first: the row before is the step before
        self.limbo: list[np.ndarray] | None = None
        """Ids of rows whose frames may not be used again yet; None: there is nobody to wait for."""

    @property
    def n_used(self) -> int:
        """Frames of the pool that have ever been used."""
        return int(self._counts[1])

    def _whole(self, stacks: np.ndarray) -> np.ndarray:
        """(n, k, ...) in one piece, frames made up to whole words."""
        whole_words = self._nbytes == 8 * self._words
        # The kernel would be compiled again for another kind of array.
        if whole_words and stacks.flags.carray and stacks.dtype == self._dtype:
            return stacks
        array = np.array(stacks, dtype=self._dtype, order="C")
        if whole_words:
            return array
        padded = np.zeros((*array.shape[:2], 8 * self._words), np.uint8)
        padded[..., : self._nbytes] = array.reshape(*array.shape[:2], -1).view(np.uint8)
        return padded

    def write(self, obs: Any, next_obs: Any, start: int) -> None:
        keep = self.limbo is not None
        if self.limbo is not None:
            old = self.ids[(start + np.arange(len(obs))) % self._size]
            self.limbo.append(old[old[:, 0] >= 0].reshape(-1))
        stacks = (self._whole(np.asarray(obs)), self._whole(np.asarray(next_obs)))
        self._store_rows(*stacks, (start, keep), self._ids, self.pool, *self._books)

    @property
    def _books(self) -> tuple[Any, Any, Any]:
        return self._info, self._table, self._counts

    def release_limbo(self) -> None:
        """Nobody waits any more: free what was kept."""
        from ding.worker.buffer.frame_kernels import release

        waiting, self.limbo = self.limbo or [], None
        for ids in waiting:
            release(ids, *self._books)

    def read(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """obs and next_obs of these slots."""
        k, ids = self._n_frame, self.ids.take(index, axis=0)
        if not self._counts[3] or (ids[:, 1:k] == ids[:, k + 1 :]).all():
            frames = self._gathered(ids[:, : k + 1])
            return frames[:, :k], frames[:, 1:]
        frames = self._gathered(_in_time(ids, k))
        return frames[:, :k], frames[:, k:]

    def _gathered(self, ids: np.ndarray) -> np.ndarray:
        block = self._blocks.empty((*ids.shape, self._words), self.pool.dtype)
        self.pool.take(ids, axis=0, out=block, mode="clip")
        raw = block.view(np.uint8)[..., : self._nbytes]
        return raw.view(self._dtype).reshape(*ids.shape, *self._shape)

    def restore(self, pool: np.ndarray, ids: np.ndarray, slots: np.ndarray) -> None:
        """Take over frames and the rows that refer to them."""
        from ding.worker.buffer import frame_kernels

        n = len(pool)
        self.pool[:n] = pool
        self.ids[slots] = ids
        uses = np.bincount(ids.reshape(-1), minlength=n)
        k = self._n_frame
        self._counts[3] = np.count_nonzero(ids[:, 1:k] != ids[:, k + 1 :])
        self._info[:], self._table[:] = 0, 0
        self._info[: len(uses), frame_kernels.USES] = uses
        frame_kernels.restore(n, self.pool, *self._books)


def _in_time(ids: np.ndarray, k: int) -> np.ndarray:
    """Rows with the newest frame of next_obs last."""
    return np.concatenate([ids[:, :k], ids[:, k + 1 :], ids[:, k : k + 1]], axis=1)
