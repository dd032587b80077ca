"""Kuhn poker: three cards, one bet. Kuhn 1950."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np

from ding.envs.two_player import TwoPlayerEnv

PASS, BET = 0, 1
_CARDS = "JQK"
_MOST_MOVES = 3


class KuhnState(NamedTuple):
    cards: tuple[int, int]
    moves: tuple[int, ...] = ()


class KuhnPokerEnv(TwoPlayerEnv):
    """Both pay 1 and get a card; one bet of 1 is possible; the higher card wins at a showdown.

    Move 0 checks or folds, move 1 bets or calls. A player sees its seat (2), its card (3) and the
    moves so far (3 x 2). In equilibrium the first player loses 1/18 a game.
    """

    n_action = 2
    obs_shape = (11,)
    highest_stake = 2.0

    def deals(self) -> list[tuple[float, KuhnState]]:
        hands = list(permutations(range(len(_CARDS)), 2))
        return [(1 / len(hands), KuhnState(cards)) for cards in hands]

    def legal(self, state: KuhnState) -> list[bool]:
        return [not _is_over(state.moves)] * 2

    def play(self, state: KuhnState, action: int, player: int) -> KuhnState:
        return KuhnState(state.cards, (*state.moves, action))

    def winner(self, state: KuhnState, player: int) -> int | None:
        if not _is_over(state.moves):
            return None
        if state.moves[-2:] == (BET, PASS):
            return 1 - player
        return int(state.cards[1] > state.cards[0])

    def stake(self, state: KuhnState) -> float:
        return 2.0 if state.moves[-2:] == (BET, BET) else 1.0

    def seen(self, state: KuhnState, player: int) -> np.ndarray:
        seen = np.zeros(self.obs_shape, np.float32)
        seen[[player, 2 + state.cards[player]]] = 1
        seen[[5 + 2 * k + move for k, move in enumerate(state.moves)]] = 1
        return seen

    def text(self, seen: np.ndarray) -> str:
        moves = np.reshape(seen[5:], (_MOST_MOVES, 2))
        names = ["bet or call" if move[BET] else "check or fold" for move in moves if move.any()]
        history = ", then ".join(names) or "none"
        return f"  your card: {_CARDS[int(seen[2:5].argmax())]}   moves so far: {history}"

    def move_name(self, action: int) -> str:
        return ("pass", "bet")[action]


def _is_over(moves: tuple[int, ...]) -> bool:
    return moves[-2:] in ((PASS, PASS), (BET, PASS), (BET, BET))
