"""Leduc poker: six cards, two rounds of bets, one card that both see. Southey et al. 2005.

https://arxiv.org/abs/1207.1411
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from ding.envs.two_player import TwoPlayerEnv

FOLD, CALL, RAISE = 0, 1, 2
_CARDS = "JQK"
_BETS = (2, 4)
"""By round."""
_MOST_RAISES = 2
_MOST_MOVES = 4
"""Of a round: check, raise, raise, call."""


class LeducState(NamedTuple):
    cards: tuple[int, int, int]
    """Of the players, and the one that is shown in the second round."""
    moves: tuple[int, ...] = ()


class _Bets(NamedTuple):
    """What the moves so far come to."""

    paid: tuple[int, int] = (1, 1)
    mover: int = 0
    round: int = 0
    raises: int = 0
    """In this round ..."""
    moves: int = 0
    """... and moves of it."""
    folded: int | None = None

    @property
    def over(self) -> bool:
        return self.folded is not None or self.round == len(_BETS)

    def after(self, move: int) -> _Bets:
        me, other = self.mover, 1 - self.mover
        if move == FOLD:
            return self._replace(folded=me)
        raised = move == RAISE
        own = self.paid[other] + (_BETS[self.round] if raised else 0)
        paid = (own, self.paid[1]) if me == 0 else (self.paid[0], own)
        if not raised and self.moves > 0:
            return _Bets(paid, 0, self.round + 1)
        return _Bets(paid, other, self.round, self.raises + raised, self.moves + 1)


@cache
def _bets(moves: tuple[int, ...]) -> _Bets:
    return _bets(moves[:-1]).after(moves[-1]) if moves else _Bets()


class LeducPokerEnv(TwoPlayerEnv):
    """Both pay 1; bets of 2, then of 4, two of them a round; a pair with the shown card wins.

    Move 0 folds, 1 checks or calls, 2 bets or raises. A player sees its seat (2), its card (3), the
    shown card (3, zeros in the first round) and the moves of both rounds (2 x 4 x 3).
    """

    n_action = 3
    obs_shape = (32,)
    highest_stake = 13.0

    def deals(self) -> list[tuple[float, LeducState]]:
        ranks = [card // 2 for card in range(2 * len(_CARDS))]
        counts = Counter(permutations(ranks, 3))
        return [(n / counts.total(), LeducState(cards)) for cards, n in sorted(counts.items())]

    def legal(self, state: LeducState) -> list[bool]:
        bets = _bets(state.moves)
        if bets.over:
            return [False] * 3
        behind = bets.paid[bets.mover] < bets.paid[1 - bets.mover]
        return [behind, True, bets.raises < _MOST_RAISES]

    def play(self, state: LeducState, action: int, player: int) -> LeducState:
        return LeducState(state.cards, (*state.moves, action))

    def next_player(self, state: LeducState, player: int) -> int:
        return _bets(state.moves).mover

    def winner(self, state: LeducState, player: int) -> int | None:
        bets = _bets(state.moves)
        if not bets.over:
            return None
        if bets.folded is not None:
            return 1 - bets.folded
        *own, shown = state.cards
        first, second = ((card == shown, card) for card in own)
        return None if first == second else int(second > first)

    def stake(self, state: LeducState) -> float:
        return float(min(_bets(state.moves).paid))

    def seen(self, state: LeducState, player: int) -> np.ndarray:
        seen = np.zeros(self.obs_shape, np.float32)
        seen[[player, 2 + state.cards[player]]] = 1
        if _bets(state.moves).round > 0:
            seen[5 + state.cards[2]] = 1
        history = seen[8:].reshape(len(_BETS), _MOST_MOVES, self.n_action)
        for k, move in enumerate(state.moves):
            before = _bets(state.moves[:k])
            history[before.round, before.moves, move] = 1
        return seen

    def text(self, seen: np.ndarray) -> str:
        shown = _CARDS[int(seen[5:8].argmax())] if seen[5:8].any() else "-"
        rounds = np.reshape(seen[8:], (len(_BETS), _MOST_MOVES, self.n_action))
        told = [" ".join(self.move_name(int(m.argmax())) for m in r if m.any()) for r in rounds]
        return (
            f"  your card: {_CARDS[int(seen[2:5].argmax())]}   shown: {shown}\n"
            f"  first round: {told[0] or '-'}   second round: {told[1] or '-'}"
        )

    def move_name(self, action: int) -> str:
        return ("fold", "call", "raise")[action]
