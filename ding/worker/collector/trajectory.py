"""Steps of several envs in columns, each env in order of time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ding.utils.batch import Batch, rows_of, tree_map


class TrajectoryStore:
    """(env, time) arrays that grow as needed; what was taken out makes room again.

    An env's row is one stretch of time that may hold several episodes; `done` says where they end.
    """

    def __init__(self, env_num: int) -> None:
        self._env_num = env_num
        self._capacity = 0
        self._columns: Batch | None = None
        self._all = np.arange(env_num)
        self._level: int | None = 0  # the count of all envs, as long as they are in step
        self.count = np.zeros(env_num, dtype=np.int64)
        """Steps stored for each env."""
        self.finished = np.zeros(env_num, dtype=np.int64)
        """Steps of each env that belong to finished episodes."""

    def reserve(self, capacity: int) -> None:
        if self._columns is None:
            self._capacity = max(self._capacity, capacity)
        elif capacity > self._capacity:
            self._columns = tree_map(lambda c: _widened(c, capacity), self._columns)
            self._capacity = capacity

    def append(self, env_id: np.ndarray, steps: Batch, done: np.ndarray) -> None:
        """Add one step for each of these envs."""
        in_step = self._level is not None and self.is_all(env_id)
        at = slice(None) if in_step else rows_of(env_id)
        latest = self._level if in_step else max(self.count[at].tolist())
        assert latest is not None
        if self._columns is None:
            self.reserve(16)
            self._columns = tree_map(self._allocate, steps)
        if latest >= self._capacity:
            self.reserve(2 * self._capacity)
        if in_step:
            # All envs at the same time: a slice, written in half the time of an index pair.
            put_rows(self._columns, steps, (at, latest))
            self.count += 1
            self._level = latest + 1
        else:
            put_rows(self._columns, steps, (at, self.count[at] if at is env_id else latest))
            self.count[at] += 1
            self._level = None
        if True in done.tolist():
            ended = env_id[done]
            self.finished[ended] = self.count[ended]

    def is_all(self, env_id: np.ndarray) -> bool:
        """Whether these are all envs, in order; a manager hands out the same array again."""
        if env_id is self._all:
            return True
        if len(env_id) != self._env_num or not np.array_equal(env_id, self._all):
            return False
        self._all = env_id
        return True

    def _allocate(self, column: np.ndarray) -> np.ndarray:
        return np.empty((self._env_num, self._capacity, *column.shape[1:]), dtype=column.dtype)

    def drop_unfinished(self, env_id: int) -> int:
        """Forget the episode that an env is in; returns how many steps that were."""
        dropped = int(self.count[env_id] - self.finished[env_id])
        self.count[env_id] = self.finished[env_id]
        self._note_level()
        return dropped

    def _note_level(self) -> None:
        first = int(self.count[0])
        self._level = first if (self.count == first).all() else None

    def flat(self, env_id: np.ndarray | None = None) -> Batch:
        """All steps, one env after the other, with a column `end` at the last of each stretch."""
        assert self._columns is not None
        if env_id is None and self._level is not None:
            n = self._level
            columns = _merged(self._columns, n)
            end = columns["done"].copy()
            end[n - 1 :: n] = True
            return {**columns, "end": end}
        ids = self._all if env_id is None else env_id
        count = self.count[ids]
        env, time = np.repeat(ids, count), _times(count)
        columns = tree_map(lambda c: c[env, time], self._columns)
        end = columns["done"].copy()
        end[(np.cumsum(count) - 1)[count > 0]] = True
        return {**columns, "end": end}

    def ready(self, nstep: int) -> np.ndarray:
        """Of the flat steps, those whose next `nstep` steps (or episode's end) are there too."""
        until = np.maximum(self.finished, self.count - nstep + 1)
        return _times(self.count) < np.repeat(until, self.count)

    def n_ready(self, nstep: int) -> int:
        """How many `ready(nstep)` names."""
        return int(np.maximum(self.finished, self.count - nstep + 1).clip(min=0).sum())

    def keep_tail(self, nstep: int) -> None:
        """Forget what `ready(nstep)` named; the rest moves to the front."""
        assert self._columns is not None
        until = np.maximum(self.finished, self.count - nstep + 1).clip(min=0)
        for i, (start, stop) in enumerate(zip(until.tolist(), self.count.tolist(), strict=True)):
            if 0 < start < stop:
                tree_map(partial(_shift, i, start, stop), self._columns)
        self.count -= np.minimum(until, self.count)
        self.finished[:] = 0
        self._note_level()

    def clear(self, env_id: int | None = None) -> None:
        index: Any = slice(None) if env_id is None else env_id
        self.count[index] = 0
        self.finished[index] = 0
        if env_id is None:
            self._level = 0
        else:
            self._note_level()

    def state_dict(self) -> dict[str, Any]:
        columns = None
        if self._columns is not None:
            longest = int(self.count.max())
            columns = tree_map(lambda c: c[:, :longest].copy(), self._columns)
        return {"columns": columns, "count": self.count.copy(), "finished": self.finished.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.count[:], self.finished[:] = state["count"], state["finished"]
        self._note_level()
        self._columns = None
        if state["columns"] is not None:
            self._capacity = max(self._capacity, int(self.count.max()), 1)
            capacity = self._capacity
            self._columns = tree_map(lambda c: _widened(c, capacity), state["columns"])


def _times(count: np.ndarray) -> np.ndarray:
    """0, 1, ... within each env's stretch of the flat steps."""
    return np.concatenate([np.arange(n) for n in count.tolist()])


def put_rows(columns: Any, steps: Any, index: Any) -> None:
    """Write into every array of a tree."""
    if isinstance(columns, dict):
        for key, column in columns.items():
            if type(column) is np.ndarray:  # Most are: no call for each of them.
                column[index] = steps[key]
            else:
                put_rows(column, steps[key], index)
    elif isinstance(columns, tuple):
        for column, step in zip(columns, steps, strict=True):
            put_rows(column, step, index)
    else:
        columns[index] = steps


def _merged(columns: Any, n: int) -> Any:
    """(env, time, ...) to (env * time, ...), always as a copy: the store is written again."""
    if isinstance(columns, dict):
        return {key: _merged(column, n) for key, column in columns.items()}
    if isinstance(columns, tuple):
        return tuple(_merged(column, n) for column in columns)
    if len(columns) == 1:
        return columns[0, :n].copy()
    return columns[:, :n].copy().reshape(-1, *columns.shape[2:])


def _shift(env_id: int, start: int, stop: int, column: np.ndarray) -> None:
    column[env_id, : stop - start] = column[env_id, start:stop].copy()


def _widened(column: np.ndarray, capacity: int) -> np.ndarray:
    wide = np.empty((len(column), capacity, *column.shape[2:]), dtype=column.dtype)
    wide[:, : column.shape[1]] = column
    return wide
