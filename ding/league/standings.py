"""Standings: what games between players say about them, with 95 % intervals.

Wilson 1927, interval of a share. Elo ratings of many games are their most likely ones
(Bradley and Terry 1952), with the interval that the curvature of the likelihood gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ding.league.rating import POINTS, get_elo_array
from ding.worker.battle import Game

RESULTS = ("wins", "draws", "losses")
_Z = 1.959964
_ELO = 400 / math.log(10)
"""Elo points of one natural logarithm of the odds."""
_FIRST_ELO = 1200.0


def counts_of(games: Sequence[Game], names: Sequence[str]) -> np.ndarray:
    """(P, P, 2, 3): wins, draws and losses of each against each, by its seat."""
    place = {name: k for k, name in enumerate(names)}
    counts = np.zeros((len(names), len(names), 2, 3), dtype=np.int64)
    for game in games:
        first, second = (place[name] for name in game.seats)
        counts[first, second, 0, RESULTS.index(game.result[0])] += 1
        counts[second, first, 1, RESULTS.index(game.result[1])] += 1
    return counts


def points_of(counts: np.ndarray) -> np.ndarray:
    """Points (...,) of counts (..., 3): a draw counts half."""
    return np.asarray(counts @ np.array([POINTS[result] for result in RESULTS]))


def share_interval(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval of a share of n games; of points it is at least as wide as needed."""
    if n == 0:
        return 0.0, 1.0
    spread = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    middle, scale = share + _Z**2 / (2 * n), 1 + _Z**2 / n
    return max((middle - spread) / scale, 0.0), min((middle + spread) / scale, 1.0)


def elo_difference(share: float) -> float:
    """Difference of ratings at which this share of the points is expected."""
    if share <= 0 or share >= 1:
        return -math.inf if share <= 0 else math.inf
    return _ELO * math.log(share / (1 - share))


@dataclass(frozen=True)
class EloTable:
    elo: np.ndarray
    """(P,) with the mean 1200."""
    interval: np.ndarray
    """(P,) half widths."""


def elo_table(counts: np.ndarray, rounds: int = 20_000) -> EloTable:
    """Most likely ratings for counts (P, P, 2, 3).

    One drawn game is added to each pair that played: who never lost has a finite rating.
    """
    played = counts.sum(axis=(2, 3)).astype(float)
    met = played > 0
    points, games = points_of(counts.sum(axis=2)) + 0.5 * met, played + met
    step = 2 * _ELO / max(games.sum(axis=1).max(), 1.0)  # below where the ascent overshoots
    elo = np.full(len(games), _FIRST_ELO)
    for _ in range(rounds):
        last, elo = elo, get_elo_array(elo, points, games, k_factor=step)
        if np.abs(elo - last).max() < 1e-6:
            break
    return EloTable(elo, _Z * np.sqrt(np.diag(_covariance(elo, games))))


def _covariance(elo: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Inverse of the information about ratings whose mean is fixed."""
    expected = 1 / (1 + np.exp((elo[None, :] - elo[:, None]) / _ELO))
    weight = games * expected * (1 - expected) / _ELO**2
    information = np.diag(weight.sum(axis=1)) - weight
    return np.asarray(np.linalg.pinv(information, hermitian=True))
