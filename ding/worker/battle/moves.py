"""Open moves: what a seat saw and did, until it acts again or the game is over."""

from __future__ import annotations

from typing import Any

import numpy as np

from ding.utils.batch import take, tree_map
from ding.worker.collector.trajectory import put_rows


class OpenMoves:
    """One move for each seat at most, with the rewards that have come since."""

    def __init__(self, n_seat: int) -> None:
        self._n_seat = n_seat
        self._columns: Any = None
        self.waiting = np.zeros(n_seat, dtype=bool)
        self._reward = np.zeros(n_seat, dtype=np.float32)

    def put(self, seats: np.ndarray, obs: Any, output: Any) -> None:
        rows = {"obs": obs, "output": output}
        if self._columns is None:
            self._columns = tree_map(self._allocate, rows)
        put_rows(self._columns, rows, seats)
        self.waiting[seats] = True
        self._reward[seats] = 0.0

    def _allocate(self, column: np.ndarray) -> np.ndarray:
        return np.zeros((self._n_seat, *column.shape[1:]), dtype=column.dtype)

    def add_reward(self, seats: np.ndarray, reward: np.ndarray) -> None:
        """Rewards of these seats; those before a seat's first move are of none of its moves."""
        self._reward[seats] += reward

    def take(self, seats: np.ndarray) -> tuple[Any, Any, np.ndarray]:
        """What these seats saw and did, and the rewards; their moves are closed."""
        rows = take(self._columns, seats)
        self.waiting[seats] = False
        return rows["obs"], rows["output"], self._reward[seats]

    def drop(self, seats: Any = slice(None)) -> int:
        """Forget the moves of these seats; returns how many there were."""
        dropped = int(np.count_nonzero(self.waiting[seats]))
        self.waiting[seats] = False
        return dropped

    def state_dict(self) -> dict[str, Any]:
        return {
            "columns": None if self._columns is None else tree_map(np.copy, self._columns),
            "waiting": self.waiting.copy(),
            "reward": self._reward.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        columns = state["columns"]
        self._columns = None if columns is None else tree_map(np.copy, columns)
        self.waiting[:], self._reward[:] = state["waiting"], state["reward"]
