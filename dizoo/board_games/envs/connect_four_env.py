"""Connect Four: seven columns of six fields, four in a line win."""

from __future__ import annotations

import numpy as np

from ding.envs.two_player import TwoPlayerEnv

_ROWS, _COLUMNS = 6, 7
_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))


class ConnectFourEnv(TwoPlayerEnv):
    """A player sees two planes, its own stones and the other's; row 0 is at the bottom."""

    n_action = _COLUMNS
    obs_shape = (2 * _ROWS * _COLUMNS,)

    def initial(self) -> np.ndarray:
        return np.zeros((_ROWS, _COLUMNS), dtype=np.int8)

    def legal(self, state: np.ndarray) -> np.ndarray:
        return state[-1] == 0

    def play(self, state: np.ndarray, action: int, player: int) -> np.ndarray:
        board = state.copy()
        board[np.count_nonzero(state[:, action]), action] = 1 - 2 * player
        return board

    def winner(self, state: np.ndarray, player: int) -> int | None:
        return player if four_in_line(state == 1 - 2 * player) else None

    def seen(self, state: np.ndarray, player: int) -> np.ndarray:
        own = state * (1 - 2 * player)
        return np.concatenate([(own == 1).ravel(), (own == -1).ravel()]).astype(np.float32)

    def text(self, seen: np.ndarray) -> str:
        """Own stones are X; the top row first, numbers of the columns below."""
        own, other = np.reshape(seen, (2, _ROWS, _COLUMNS)) > 0
        signs = np.where(own, "X", np.where(other, "O", "."))[::-1]
        rows = ["  " + " ".join(row) for row in signs]
        return "\n".join([*rows, "  " + " ".join(map(str, range(_COLUMNS)))])


def four_in_line(stones: np.ndarray) -> bool:
    """Whether four of a player's stones (6, 7) lie in a line."""
    padded = np.zeros((_ROWS + 3, _COLUMNS + 6), dtype=bool)
    padded[:_ROWS, 3:-3] = stones
    for up, right in _DIRECTIONS:
        line = stones.copy()
        for k in range(1, 4):
            at = 3 + k * right
            line &= padded[k * up : k * up + _ROWS, at : at + _COLUMNS]
        if line.any():
            return True
    return False
