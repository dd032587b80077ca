"""Observations and policy outputs of the envs that have been acted for, until their steps come."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ding.utils.batch import Batch, rows_of, take, tree_map
from ding.worker.collector.trajectory import put_rows


class Pending:
    """One row per env. What is put is copied: the manager may write over its own arrays.

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
        """These envs are about to step."""
        rows, at = {"obs": obs, "output": output}, rows_of(env_id)
        with self._guard:
            if self._columns is None:
                self._columns = tree_map(self._allocate, rows)
            put_rows(self._columns, rows, at)
            self._sent[at] = True
            self._stale[at] = False

    def _allocate(self, column: np.ndarray) -> np.ndarray:
        return np.empty((self._env_num, *column.shape[1:]), dtype=column.dtype)

    def arrived(self, env_id: np.ndarray) -> np.ndarray:
        """Note that these envs have stepped; says which of them had been acted for at all."""
        at = rows_of(env_id)
        with self._guard:
            acted_for = self._sent[at].copy()
            self._sent[at] = False
        return acted_for

    def rows(self, env_id: np.ndarray) -> tuple[Any, Any]:
        """What these envs' last actions were made from, and what the policy gave out.

        Valid until they are put again.
        """
        with self._guard:
            rows = take(self._columns, rows_of(env_id))
        return rows["obs"], rows["output"]

    def disown(self) -> None:
        """Whatever is under way now: nobody will want those steps."""
        if self._columns is None:
            return  # Nothing was put since the last time.
        self._stale |= self._sent
        self.any_stale = bool(self._stale.any())
        self._columns = None  # the next policy's outputs may look different

    def unwanted(self, env_id: np.ndarray) -> np.ndarray:
        """Which of the steps that arrived nobody wants; to be asked once for every step."""
        stale = self._stale[env_id]
        self._stale[env_id] = False
        self.any_stale = bool(self._stale.any())
        return stale

    def clear(self) -> None:
        """The envs begin anew: nothing is under way."""
        self._sent[:] = False
        self._stale[:] = False
        self.any_stale = False
        self._columns = None
