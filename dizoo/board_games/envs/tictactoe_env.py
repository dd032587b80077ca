"""Tic-tac-toe, and the player that never loses."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ding.envs.two_player import TwoPlayerEnv

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
Board = tuple[int, ...]
"""Nine fields: 1 is the first player's, -1 the second's, 0 nobody's."""


class TicTacToeEnv(TwoPlayerEnv):
    """A player sees nine fields of its own stones, then nine of the other's."""

    n_action = 9
    obs_shape = (18,)

    def initial(self) -> Board:
        return (0,) * 9

    def legal(self, state: Board) -> list[bool]:
        return [field == 0 for field in state]

    def play(self, state: Board, action: int, player: int) -> Board:
        return (*state[:action], 1 - 2 * player, *state[action + 1 :])

    def winner(self, state: Board, player: int) -> int | None:
        return player if has_line(state, 1 - 2 * player) else None

    def seen(self, state: Board, player: int) -> np.ndarray:
        own = np.array(state) * (1 - 2 * player)
        return np.concatenate([own == 1, own == -1]).astype(np.float32)

    def text(self, seen: np.ndarray) -> str:
        """Own stones are X, free fields have the number of their move."""
        own, other = seen[:9] > 0, seen[9:] > 0
        signs = ["X" if own[k] else "O" if other[k] else str(k) for k in range(9)]
        return "\n".join("  " + " | ".join(signs[row : row + 3]) for row in (0, 3, 6))


def has_line(board: Board, side: int) -> bool:
    return any(board[a] == board[b] == board[c] == side for a, b, c in LINES)


@cache
def value(board: Board) -> int:
    """Minimax: the result for the player to move, whose stones are 1: 1, 0 or -1."""
    if has_line(board, -1):
        return -1
    return max((-value(after(board, k)) for k in legal_moves(board)), default=0)


def after(board: Board, move: int) -> Board:
    """The board as the other player sees it after this move."""
    return tuple(-(1 if k == move else field) for k, field in enumerate(board))


def legal_moves(board: Board) -> list[int]:
    return [k for k, field in enumerate(board) if field == 0]


def best_moves(board: Board) -> list[int]:
    moves = legal_moves(board)
    best = max(-value(after(board, k)) for k in moves)
    return [k for k in moves if -value(after(board, k)) == best]


def perfect(obs: Any, rng: np.random.Generator) -> int:
    """Bot: any of the moves that minimax values most."""
    own, other = obs["obs"][:9], obs["obs"][9:]
    return int(rng.choice(best_moves(tuple(int(x) for x in own - other))))
