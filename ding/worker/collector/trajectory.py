"""Steps of several seats in columns: whole ones by time, and those whose outcome is not there yet.

A seat is one trajectory at a time: an env, or one player of an env.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np

from ding.utils.batch import Batch, rows_of, take, tree_map


class TrajectoryStore:
    """(seat, time) arrays that grow as needed; what was taken out makes room again.

    A seat's row is one stretch of time that may hold several episodes; `done` says where they end.
    """

    def __init__(self, n_seat: int) -> None:
        self._n_seat = n_seat
        self._capacity = 0
        self._columns: Batch | None = None
        self._all = np.arange(n_seat)
        self._level: int | None = 0  # the count of all seats, as long as they are in step
        self.count = np.zeros(n_seat, dtype=np.int64)
        """Steps stored for each seat."""
        self.finished = np.zeros(n_seat, dtype=np.int64)
        """Steps of each seat that belong to finished episodes."""

    def reserve(self, capacity: int) -> None:
        if self._columns is None:
            self._capacity = max(self._capacity, capacity)
        elif capacity > self._capacity:
            self._columns = tree_map(lambda c: _widened(c, capacity), self._columns)
            self._capacity = capacity

    def append(self, seat: np.ndarray, steps: Batch, done: np.ndarray) -> Any:
        """Add one step for each of these seats; returns an index of their rows, maybe a slice."""
        # A manager hands out the same array of all its envs again and again.
        is_all = seat is self._all
        if not is_all and len(seat) == self._n_seat and np.array_equal(seat, self._all):
            self._all, is_all = seat, True
        in_step = is_all and self._level is not None
        at: Any = slice(None) if is_all else rows_of(seat)
        latest: Any = self._level if in_step else max(self.count[at].tolist())
        if self._columns is None:
            self.reserve(16)
            self._columns = tree_map(self._allocate, steps)
        if latest >= self._capacity:
            self.reserve(2 * self._capacity)
        # Steps of one time are written with a slice, in half the time of an index pair.
        one_time = in_step or len(seat) == 1
        put_rows(self._columns, steps, (at, latest) if one_time else (seat, self.count[seat]))
        self._level = latest + 1 if in_step else None
        self.count[at] += 1
        if True in done.tolist():
            ended = seat[done]
            self.finished[ended] = self.count[ended]
        return at

    def _allocate(self, column: np.ndarray) -> np.ndarray:
        return np.empty((self._n_seat, self._capacity, *column.shape[1:]), dtype=column.dtype)

    def drop_unfinished(self, seat: int) -> int:
        """Forget the episode that a seat is in; returns how many steps that were."""
        dropped = int(self.count[seat] - self.finished[seat])
        self.count[seat] = self.finished[seat]
        self._note_level()
        return dropped

    def _note_level(self) -> None:
        first = int(self.count[0])
        self._level = first if (self.count == first).all() else None

    def flat(self, seat: np.ndarray | None = None) -> Batch:
        """All steps, one seat after the other, with a column `end` at the last of each stretch."""
        assert self._columns is not None
        if seat is None and self._level is not None:
            n = self._level
            columns = tree_map(partial(_merged, n), self._columns)
            end = columns["done"].copy()
            end[n - 1 :: n] = True
            return {**columns, "end": end}
        seats = self._all if seat is None else seat
        count = self.count[seats]
        row, time = np.repeat(seats, count), _times(count)
        columns = tree_map(lambda c: c[row, time], self._columns)
        end = columns["done"].copy()
        end[(np.cumsum(count) - 1)[count > 0]] = True
        return {**columns, "end": end}

    def complete(self, nstep: int) -> np.ndarray:
        """Mask of the flat steps whose next `nstep` steps (or episode's end) are there too."""
        until = np.maximum(self.finished, self.count - nstep + 1)
        return _times(self.count) < np.repeat(until, self.count)

    def n_complete(self, nstep: int) -> int:
        """Number of steps that `complete(nstep)` names."""
        return int(np.maximum(self.finished, self.count - nstep + 1).clip(min=0).sum())

    def keep_tail(self, nstep: int) -> None:
        """Forget the steps that `complete(nstep)` named; the rest moves to the front."""
        assert self._columns is not None
        until = np.maximum(self.finished, self.count - nstep + 1).clip(min=0)
        for i, (start, stop) in enumerate(zip(until.tolist(), self.count.tolist(), strict=True)):
            if 0 < start < stop:
                tree_map(partial(_shift, i, start, stop), self._columns)
        self.count -= np.minimum(until, self.count)
        self.finished[:] = 0
        self._note_level()

    def clear(self, seat: int | None = None) -> None:
        index: Any = slice(None) if seat is None else seat
        self.count[index] = 0
        self.finished[index] = 0
        if seat is None:
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


class PartialTransitions:
    """Observation and policy output of each env that was acted for, until its step arrives.

    One row per env. Rows that are put are copied: the manager may write over its own arrays.
    Threads that act put rows of different envs; the one that stores takes them out.
    """

    def __init__(self, env_num: int) -> None:
        self._env_num = env_num
        self._columns: Batch | None = None
        self._guard = threading.Lock()
        self._sent = np.zeros(env_num, dtype=bool)
        self._stale = np.zeros(env_num, dtype=bool)
        self.any_stale = False

    def put(self, env_id: np.ndarray, obs: Any, output: Any) -> None:
        """Keep the rows of these envs, which are about to step."""
        rows, at = {"obs": obs, "output": output}, rows_of(env_id)
        with self._guard:
            if self._columns is None:
                self._columns = tree_map(self._allocate, rows)
            put_rows(self._columns, rows, at)
            self._sent[at] = True
            self._stale[at] = False

    def _allocate(self, column: np.ndarray) -> np.ndarray:
        return np.empty((self._env_num, *column.shape[1:]), dtype=column.dtype)

    def note_arrival(self, env_id: np.ndarray) -> np.ndarray:
        """Note that these envs have stepped; returns which of them had been acted for at all."""
        at = rows_of(env_id)
        with self._guard:
            acted_for = self._sent[at].copy()
            self._sent[at] = False
        return acted_for

    def rows(self, env_id: np.ndarray) -> tuple[Any, Any]:
        """Observations that these envs' last actions were made from, and the policy's outputs.

        Valid until they are put again.
        """
        with self._guard:
            rows = take(self._columns, rows_of(env_id))
        return rows["obs"], rows["output"]

    def mark_stale(self) -> None:
        """Mark every step that is under way as one of a policy that is gone."""
        if self._columns is None:
            return  # Nothing was put since the last time.
        self._stale |= self._sent
        self.any_stale = bool(self._stale.any())
        self._columns = None  # The next policy's outputs may have other columns.

    def pop_stale(self, env_id: np.ndarray) -> np.ndarray:
        """Mask of the steps that are stale; they are forgotten with this call."""
        stale = self._stale[env_id]
        self._stale[env_id] = False
        self.any_stale = bool(self._stale.any())
        return stale

    def clear(self) -> None:
        """Forget everything: the envs begin anew, nothing is under way."""
        self._sent[:] = False
        self._stale[:] = False
        self.any_stale = False
        self._columns = None


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


def _times(count: np.ndarray) -> np.ndarray:
    """0, 1, ... within each seat's stretch of the flat steps."""
    return np.concatenate([np.arange(n) for n in count.tolist()])


def _merged(n: int, column: np.ndarray) -> np.ndarray:
    """(seat, time, ...) to (seat * n, ...), always as a copy: the store is written again."""
    if len(column) == 1:
        return column[0, :n].copy()
    return column[:, :n].copy().reshape(-1, *column.shape[2:])


def _shift(seat: int, start: int, stop: int, column: np.ndarray) -> None:
    column[seat, : stop - start] = column[seat, start:stop].copy()


def _widened(column: np.ndarray, capacity: int) -> np.ndarray:
    wide = np.empty((len(column), capacity, *column.shape[2:]), dtype=column.dtype)
    wide[:, : column.shape[1]] = column
    return wide
