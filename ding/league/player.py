"""Players of a league: whom each plays, when it is copied, and when it begins anew.

Vinyals et al. 2019 (AlphaStar), https://www.nature.com/articles/s41586-019-1724-z
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ding.league.rating import LeagueMetricEnv, PlayerRating
from ding.utils.errors import ConfigError, nearest

_SQUARED, _VARIANCE = "squared", "variance"


def pfsp(win_rates: np.ndarray, weighting: str) -> np.ndarray:
    """Probabilities of opponents by the rates (P,) of winning against them.

    'squared' prefers hard ones, 'variance' those of the own level. Where no weight is left, since
    all are beaten always (or with 'variance' also never), all are alike.
    """
    rates = np.asarray(win_rates, dtype=float)
    if rates.ndim != 1 or not len(rates) or (rates < 0).any() or (rates > 1).any():
        raise ValueError(f"win rates must be (P,) between 0 and 1, got {win_rates}")
    if weighting not in (_SQUARED, _VARIANCE):
        raise ValueError(f"weighting = '{weighting}'{nearest(weighting, [_SQUARED, _VARIANCE])}")
    weight = (1 - rates) ** 2 if weighting == _SQUARED else rates * (1 - rates)
    if weight.sum() < 1e-8:
        return uniform(rates)
    return np.asarray(weight / weight.sum())


def uniform(win_rates: np.ndarray) -> np.ndarray:
    return np.full(len(win_rates), 1 / len(win_rates))


class Player:
    _name: ClassVar[str] = "player"

    def __init__(
        self,
        cfg: Mapping[str, Any],
        category: str,
        init_payoff: Any,
        checkpoint_path: str,
        player_id: str,
        total_agent_step: int,
        rating: PlayerRating,
    ) -> None:
        self._cfg = cfg
        self.category, self.payoff = category, init_payoff
        self.checkpoint_path, self.player_id = checkpoint_path, player_id
        self.total_agent_step, self.rating = total_agent_step, rating


class HistoricalPlayer(Player):
    """A copy that does not learn any more."""

    def __init__(self, *args: Any, parent_id: str) -> None:
        super().__init__(*args)
        self.parent_id = parent_id


class ActivePlayer(Player):
    """A player that learns; `branch_probs` says how often it gets its opponent in which way."""

    config: ClassVar[dict[str, Any]] = {}

    def __init__(self, cfg: Mapping[str, Any], *args: Any) -> None:
        super().__init__({**self.config, **cfg}, *args)
        self.rng = np.random.default_rng(0)
        self._last_step = 0
        branches = self._cfg["branch_probs"]
        for name in branches:
            if not hasattr(self, f"_{name}_branch"):
                kinds = [k[1:-7] for k in dir(self) if k.endswith("_branch")]
                raise ConfigError(
                    f"branch_probs of {self.player_id} has '{name}'{nearest(name, kinds)}"
                )
        if abs(sum(branches.values()) - 1) > 1e-6:
            raise ConfigError(f"branch_probs of {self.player_id} must add up to 1: {branches}")

    def is_trained_enough(self, select_fn: Callable[[Player], bool] | None = None) -> bool:
        """Long since the last copy, or for a while and stronger than all selected ones."""
        steps, phase = self.total_agent_step - self._last_step, self._cfg["one_phase_step"]
        if steps < phase:
            return False
        if steps >= 2 * phase:
            return True
        selected = self._players(select_fn or (lambda p: isinstance(p, HistoricalPlayer)))
        if not selected:
            return False
        return bool((self.payoff[self, selected] > self._cfg["strong_win_rate"]).all())

    def snapshot(self, metric_env: LeagueMetricEnv) -> HistoricalPlayer:
        """A copy of itself as it is now, of the same mean rating."""
        path = self.checkpoint_path.split(".pth")[0] + f"_{self.total_agent_step}.pth"
        self._last_step = self.total_agent_step
        return HistoricalPlayer(
            self._cfg,
            self.category,
            self.payoff,
            path,
            f"{self.player_id}_{self.total_agent_step}_historical",
            self.total_agent_step,
            metric_env.create_rating(mu=self.rating.mu, elo_init=self.rating.elo),
            parent_id=self.player_id,
        )

    def mutate(self, info: Mapping[str, Any]) -> str | None:
        """Checkpoint to begin anew from, if it should."""
        return None

    def get_job(self, eval_flag: bool = False) -> dict[str, Any]:
        if eval_flag:
            return {"opponent": "evaluator"}
        names, probs = zip(*self._cfg["branch_probs"].items(), strict=True)
        branch = names[int(self.rng.choice(len(names), p=np.array(probs) / sum(probs)))]
        return {"opponent": getattr(self, f"_{branch}_branch")()}

    def _players(self, select: Callable[[Player], bool]) -> list[Player]:
        return [player for player in self.payoff.players if select(player)]

    def _drawn(self, players: Sequence[Player], weighting: str | None = None) -> Player:
        """One of them, by their win rates; itself while there is none."""
        if not players:
            return self
        rates = self.payoff[self, list(players)][0]
        probs = uniform(rates) if weighting is None else pfsp(rates, weighting)
        return players[int(self.rng.choice(len(players), p=probs))]

    def _historical(self) -> list[Player]:
        return self._players(lambda p: isinstance(p, HistoricalPlayer))

    def _pfsp_branch(self) -> Player:
        return self._drawn(self._historical(), _SQUARED)

    def state_dict(self) -> dict[str, Any]:
        return {"last_step": self._last_step, "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._last_step = state["last_step"]
        self.rng.bit_generator.state = state["rng"]


class NaiveSpPlayer(ActivePlayer):
    """Plays itself, and its past."""

    _name = "naive_sp_player"
    config: ClassVar[dict[str, Any]] = {
        # Train iterations between two copies, at least.
        "one_phase_step": 10,
        # Rate of winning above which a player is strong.
        "strong_win_rate": 0.7,
        # How often each way of finding an opponent is taken.
        "branch_probs": {"pfsp": 0.5, "sp": 0.5},
    }

    def _sp_branch(self) -> Player:
        return self


class MainPlayer(ActivePlayer):
    """Plays the past of all, main players of now, and those it has forgotten to beat."""

    _name = "main_player"
    config: ClassVar[dict[str, Any]] = {
        "one_phase_step": 10,
        "strong_win_rate": 0.7,
        "branch_probs": {"pfsp": 0.5, "sp": 0.35, "verification": 0.15},
        # A main player is too strong below this rate of winning against it: its past is played.
        "min_valid_win_rate": 0.3,
    }

    def _mains(self) -> list[Player]:
        return self._players(lambda p: isinstance(p, MainPlayer))

    def _sp_branch(self) -> Player:
        other = self._drawn(self._mains())
        if other is self or self.payoff[self, other][0, 0] > self._cfg["min_valid_win_rate"]:
            return other
        past = [p for p in self._historical() if getattr(p, "parent_id", "") == other.player_id]
        return self._drawn(past, _VARIANCE)

    def _verification_branch(self) -> Player:
        """Past exploiters, and own past selves that win again; else whom pfsp says."""
        past, strong = self._historical(), self._cfg["strong_win_rate"]
        by_exploiters = [p for p in past if "exploiter" in getattr(p, "parent_id", "")]
        own = [p for p in past if getattr(p, "parent_id", "") == self.player_id]
        for players in (by_exploiters, own):
            if players and self.payoff[self, players].min() < 1 - strong:
                return self._drawn(players, _SQUARED)
        return self._pfsp_branch()


class MainExploiter(ActivePlayer):
    """Looks for weaknesses of the main players, and begins anew after every copy."""

    _name = "main_exploiter"
    config: ClassVar[dict[str, Any]] = {
        "one_phase_step": 10,
        "strong_win_rate": 0.7,
        "branch_probs": {"main_players": 1.0},
        "min_valid_win_rate": 0.3,
    }

    def is_trained_enough(self, select_fn: Callable[[Player], bool] | None = None) -> bool:
        return super().is_trained_enough(select_fn or (lambda p: isinstance(p, MainPlayer)))

    def _main_players_branch(self) -> Player:
        main = self._drawn(self._players(lambda p: isinstance(p, MainPlayer)))
        if main is self or self.payoff[self, main][0, 0] >= self._cfg["min_valid_win_rate"]:
            return main
        past = [p for p in self._historical() if getattr(p, "parent_id", "") == main.player_id]
        return self._drawn(past, _VARIANCE) if past else main

    def mutate(self, info: Mapping[str, Any]) -> str | None:
        path: str = info["reset_checkpoint_path"]
        return path


class LeagueExploiter(ActivePlayer):
    """Looks for weaknesses of the whole league, and sometimes begins anew after a copy."""

    _name = "league_exploiter"
    config: ClassVar[dict[str, Any]] = {
        "one_phase_step": 10,
        "strong_win_rate": 0.7,
        "branch_probs": {"pfsp": 1.0},
        # How often it begins anew.
        "mutate_prob": 0.25,
    }

    def mutate(self, info: Mapping[str, Any]) -> str | None:
        path: str = info["reset_checkpoint_path"]
        return path if self.rng.random() < self._cfg["mutate_prob"] else None


PLAYERS: dict[str, type[ActivePlayer]] = {
    cls._name: cls for cls in (NaiveSpPlayer, MainPlayer, MainExploiter, LeagueExploiter)
}


def create_player(cfg: Mapping[str, Any], player_type: str, *args: Any) -> ActivePlayer:
    """`cfg` has a section for each type; what it leaves out is as the type says."""
    if player_type not in PLAYERS:
        raise ConfigError(
            f"league.active_players has '{player_type}'{nearest(player_type, PLAYERS)}"
        )
    cls, own = PLAYERS[player_type], dict(cfg.get(player_type, {}))
    for key in own:
        if key not in cls.config:
            raise ConfigError(
                f"unknown config key 'league.{player_type}.{key}'{nearest(key, cls.config)}"
            )
    return cls(own, *args)
