"""Poker: moves, stakes, hidden cards, chance by the env's generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.league.exploitability import GameTree
from dizoo.poker.envs.kuhn_poker_env import KuhnPokerEnv, KuhnState
from dizoo.poker.envs.leduc_poker_env import LeducPokerEnv, LeducState


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


CALLED, FOLDED = [1, 1, 1, 1], [1, 1, 2, 0]


@pytest.mark.parametrize(
    ("moves", "cards", "reward"),
    [
        (CALLED, (0, 2, 1), -1),
        (CALLED, (0, 2, 0), 1),  # a pair with the shown card
        (CALLED, (1, 1, 0), 0),
        (FOLDED, (0, 2, 1), 1),
        ([2, 0], (0, 2, 1), 1),
        ([1, 2, 1, 1, 1], (2, 0, 1), 3),
        ([2, 2, 1, 2, 2, 1], (2, 0, 1), 13),
        ([2, 2, 1, 2, 2, 0], (2, 0, 1), -9),
    ],
)
def test_leduc_pays(moves: list[int], cards: tuple[int, int, int], reward: int) -> None:
    env = with_cards(LeducPokerEnv(), LeducState(cards))
    steps = [env.step(np.array([move, move])) for move in moves]
    assert [step.done for step in steps] == [False] * (len(moves) - 1) + [True]
    assert steps[-1].reward.tolist() == [reward, -reward] and "forfeit" not in steps[-1].info


def test_leduc_folds_to_a_bet_and_raises_twice_a_round() -> None:
    env = LeducPokerEnv()
    legal = {moves: env.legal(LeducState((0, 1, 2), moves)) for moves in [(), (2,), (2, 2), (1,)]}
    assert legal[()] == legal[1,] == [False, True, True]
    assert legal[2,] == [True, True, True] and legal[2, 2] == [True, True, False]
    # The second round begins with the first player, whoever called.
    assert [env.next_player(LeducState((0, 1, 2), m), 1) for m in [(1, 1), (2, 1), (2, 2)]] == [
        0
    ] * 3


def test_leduc_shows_its_card_in_the_second_round_alone() -> None:
    env = LeducPokerEnv()
    one, other = (env.seen(LeducState((1, 0, shown), (2,)), 1) for shown in (0, 2))
    assert (one == other).all()
    later = env.seen(LeducState((1, 0, 2), (2, 1, 1)), 1)
    assert np.flatnonzero(later).tolist() == [1, 2, 5 + 2, 8 + 2, 8 + 3 + 1, 20 + 1]
    assert env.text(later) == (
        "  your card: J   shown: K\n  first round: raise call   second round: call"
    )


def test_uniform_leduc_is_as_published() -> None:
    """OpenSpiel: 288 information states where suits do not count, NashConv 4.7472."""
    tree = GameTree(LeducPokerEnv())
    assert tree.mask.shape == (288, 3)
    assert tree.nash_conv(tree.uniform()) == pytest.approx(4.7472, abs=1e-4)
    assert tree.exploitability(tree.uniform()) == pytest.approx(2.3736, abs=1e-4)
