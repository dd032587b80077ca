"""Poker: moves, stakes, hidden cards, chance by the env's generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dizoo.poker.envs.kuhn_poker_env import KuhnPokerEnv, KuhnState


def with_cards(env: Any, state: Any) -> Any:
    env.seed(0)
    env.reset()
    env._state = state
    return env


@pytest.mark.parametrize(
    ("moves", "cards", "reward"),
    [
        ([0, 0], (0, 2), -1),
        ([0, 0], (2, 1), 1),
        ([1, 0], (0, 2), 1),
        ([1, 1], (0, 2), -2),
        ([0, 1, 0], (2, 0), -1),
        ([0, 1, 1], (2, 0), 2),
    ],
)
def test_kuhn_pays(moves: list[int], cards: tuple[int, int], reward: int) -> None:
    env = with_cards(KuhnPokerEnv(), KuhnState(cards))
    steps = [env.step(np.array([move, move])) for move in moves]
    assert [step.done for step in steps] == [False] * (len(moves) - 1) + [True]
    assert steps[-1].reward.tolist() == [reward, -reward]
    assert steps[-1].info["result"][0] == ("wins" if reward > 0 else "losses")


def test_players_see_their_own_card_alone() -> None:
    env = KuhnPokerEnv()
    one, other = (env.seen(KuhnState(cards, (0,)), 0) for cards in ((1, 0), (1, 2)))
    assert (one == other).all()
    assert np.flatnonzero(one).tolist() == [0, 3, 5]


def test_the_seed_deals_and_all_deals_come_alike_often() -> None:
    env = KuhnPokerEnv()

    def deals(seed: int) -> list[tuple[int, int]]:
        env.seed(seed)
        return [env.reset() and env._state.cards for _ in range(600)]

    first = deals(3)
    assert first == deals(3) != deals(4)
    counts = [first.count(cards) for cards in sorted(set(first))]
    assert len(counts) == 6 and min(counts) > 70 and max(counts) < 130


def test_an_illegal_move_costs_the_highest_stake() -> None:
    env = with_cards(KuhnPokerEnv(), KuhnState((0, 1)))
    step = env.step(np.array([7, 0]))
    assert step.done and step.reward.tolist() == [-2, 2] and step.info["forfeit"] == 0
