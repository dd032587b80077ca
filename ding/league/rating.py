"""Ratings of players: Elo, and TrueSkill for two.

Elo 1978. Herbrich et al. 2006, TrueSkill (equations of its appendix for two players)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ding.utils.errors import ConfigError

_NORMAL = NormalDist()
POINTS = {"wins": 1.0, "draws": 0.5, "losses": 0.0}
REVERSED = {"wins": "losses", "draws": "draws", "losses": "wins"}


@dataclass(frozen=True)
class PlayerRating:
    mu: float
    sigma: float
    elo: float

    @property
    def exposure(self) -> float:
        """A skill that the player has almost surely."""
        return self.mu - 3 * self.sigma

    @property
    def interval(self) -> tuple[float, float]:
        """Where the skill lies with 95 %."""
        return self.mu - 1.96 * self.sigma, self.mu + 1.96 * self.sigma


class EloCalculator:
    @classmethod
    def get_new_rating(
        cls, rating_a: float, rating_b: float, result: int, k_factor: int = 32, beta: int = 200
    ) -> tuple[float, float]:
        """Ratings after a game that a has won (1), drawn (0) or lost (-1)."""
        if result not in (1, 0, -1):
            raise ValueError(f"result = {result}: 1 (a wins), 0 or -1")
        expected = 1 / (1 + 10 ** ((rating_b - rating_a) / (2 * beta)))
        change = k_factor * ((result + 1) / 2 - expected)
        return rating_a + change, rating_b - change

    @classmethod
    def get_new_rating_array(
        cls,
        rating: np.ndarray,
        result: np.ndarray,
        game_count: np.ndarray,
        k_factor: float = 32,
        beta: int = 200,
    ) -> np.ndarray:
        """Ratings (P,) after many games at once: points (P, P) of the rows in counts (P, P)."""
        difference = rating[None, :] - rating[:, None]
        expected = game_count / (1 + 10 ** (difference / (2 * beta)))
        return np.asarray(rating + k_factor * (result - expected).sum(axis=1))


get_elo = EloCalculator.get_new_rating
get_elo_array = EloCalculator.get_new_rating_array


class LeagueMetricEnv:
    """Ratings of a league: both kinds change with every game."""

    def __init__(
        self,
        mu: float = 0.0,
        sigma: float = 25 / 3,
        beta: float = 25 / 6,
        tau: float = 0.0,
        draw_probability: float = 0.02,
        elo_init: float = 1200,
    ) -> None:
        if not (sigma > 0 and beta > 0 and tau >= 0 and 0 < draw_probability < 1):
            raise ConfigError(
                f"league.metric: sigma = {sigma} and beta = {beta} must be above 0, tau = {tau} "
                f"not below, and draw_probability = {draw_probability} between 0 and 1"
            )
        self.mu, self.sigma, self.elo_init = mu, sigma, elo_init
        self._beta, self._tau = beta, tau
        self._margin = _NORMAL.inv_cdf((draw_probability + 1) / 2) * math.sqrt(2) * beta

    def create_rating(
        self, mu: float | None = None, sigma: float | None = None, elo_init: float | None = None
    ) -> PlayerRating:
        return PlayerRating(
            self.mu if mu is None else mu,
            self.sigma if sigma is None else sigma,
            self.elo_init if elo_init is None else elo_init,
        )

    def rate_1vs1(
        self, a: PlayerRating, b: PlayerRating, result: Sequence[str] | None = None
    ) -> tuple[PlayerRating, PlayerRating]:
        """Ratings after these games of a against b; without a result a has won one."""
        for one in ["wins"] if result is None else result:
            elo_a, elo_b = get_elo(a.elo, b.elo, int(2 * POINTS[one] - 1))
            (mu_a, sigma_a), (mu_b, sigma_b) = self._update(a, b, one)
            a, b = PlayerRating(mu_a, sigma_a, elo_a), PlayerRating(mu_b, sigma_b, elo_b)
        return a, b

    def rate_1vsC(  # noqa: N802 (established name)
        self, a: PlayerRating, const: PlayerRating, result: Sequence[str] | None = None
    ) -> PlayerRating:
        """The same, where the other one's rating stays."""
        for one in ["wins"] if result is None else result:
            a, _ = self.rate_1vs1(a, const, [one])
        return a

    def _update(
        self, a: PlayerRating, b: PlayerRating, result: str
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Mean and deviation of both."""
        if result == "losses":
            second, first = self._update(b, a, "wins")
            return first, second
        var_a, var_b = (r.sigma**2 + self._tau**2 for r in (a, b))
        c = math.sqrt(2 * self._beta**2 + var_a + var_b)
        t, margin = (a.mu - b.mu) / c, self._margin / c
        v, w = _won(t - margin) if result == "wins" else _drawn(t, margin)
        new_a = a.mu + var_a / c * v, math.sqrt(var_a * max(1 - var_a / c**2 * w, 1e-12))
        new_b = b.mu - var_b / c * v, math.sqrt(var_b * max(1 - var_b / c**2 * w, 1e-12))
        return new_a, new_b


def _won(x: float) -> tuple[float, float]:
    """Corrections of mean and variance."""
    below = _NORMAL.cdf(x)
    v = _NORMAL.pdf(x) / below if below > 1e-300 else -x
    return v, v * (v + x)


def _drawn(t: float, margin: float) -> tuple[float, float]:
    high, low = margin - t, -margin - t
    within = max(_NORMAL.cdf(high) - _NORMAL.cdf(low), 1e-300)
    v = (_NORMAL.pdf(low) - _NORMAL.pdf(high)) / within
    return v, v * v + (high * _NORMAL.pdf(high) - low * _NORMAL.pdf(low)) / within
