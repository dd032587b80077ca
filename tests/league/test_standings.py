"""Standings by hand-computed numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ding.league.standings import (
    counts_of,
    elo_difference,
    elo_table,
    points_of,
    share_interval,
)
from ding.worker.battle import Game


def game(first: str, second: str, result: str) -> Game:
    other = {"wins": "losses", "draws": "draws", "losses": "wins"}[result]
    return Game(0, (first, second), (result, other), (0.0, 0.0), 1, None, "")


def test_counts_are_by_player_opponent_and_seat() -> None:
    games = [game("a", "b", "wins"), game("b", "a", "draws"), game("b", "a", "wins")]
    counts = counts_of(games, ["a", "b"])
    assert counts[0, 1].tolist() == [[1, 0, 0], [0, 1, 1]]
    assert counts[1, 0].tolist() == [[1, 1, 0], [0, 0, 1]]
    assert points_of(counts[0, 1]).tolist() == [1.0, 0.5]


def test_wilsons_interval() -> None:
    """Known: 95 % of 8 of 10 are .490 to .943; none of 10 is up to .278."""
    assert share_interval(0.8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert share_interval(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert share_interval(0.0, 0) == (0.0, 1.0)


def test_elo_of_a_share() -> None:
    assert elo_difference(10 / 11) == pytest.approx(400)
    assert elo_difference(0.5) == 0 and elo_difference(1.0) == float("inf")


def test_ratings_of_two_are_those_of_their_share() -> None:
    counts = np.zeros((2, 2, 2, 3), dtype=int)
    counts[0, 1, 0], counts[1, 0, 1] = [75, 0, 24], [24, 0, 75]
    table = elo_table(counts)
    difference = elo_difference(75.5 / 100)  # with the draw that is added
    assert table.elo == pytest.approx([1200 + difference / 2, 1200 - difference / 2], abs=1e-3)
    # The difference has the deviation 400 / ln 10 / sqrt(n p q); each rating half of it.
    deviation = 173.7178 / np.sqrt(100 * 0.755 * 0.245)
    assert table.interval == pytest.approx([1.96 * deviation / 2] * 2, rel=1e-3)


def test_ratings_of_many_are_found_from_their_chances() -> None:
    true = np.array([900.0, 1100.0, 1300.0, 1500.0])
    share = 1 / (1 + 10 ** ((true[None] - true[:, None]) / 400))
    counts = np.zeros((4, 4, 2, 3))
    counts[:, :, 0, 0], counts[:, :, 0, 2] = 1e5 * share, 1e5 * (1 - share)
    counts[np.arange(4), np.arange(4)] = 0
    table = elo_table(counts.astype(int))
    assert table.elo == pytest.approx(true, abs=1.0)
    # 95 % of what is estimated lies within: here the error is that of rounding and the draw added.
    assert (np.abs(table.elo - true) < table.interval).all()
