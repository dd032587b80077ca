"""Payoff: who beats whom how often, old games counting less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.league.rating import POINTS, REVERSED
from ding.utils.errors import ConfigError

RESULTS = ("wins", "draws", "losses")


class BattleRecordDict(dict[str, float]):
    """Decayed counts of wins, draws, losses and games."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys((*RESULTS, "games"), 0.0))

    def __mul__(self, decay: float) -> BattleRecordDict:
        scaled = BattleRecordDict()
        scaled.update({key: count * decay for key, count in self.items()})
        return scaled

    def add(self, result: str, decay: float) -> None:
        """Count one game more; all before it count less."""
        for key in self:
            self[key] *= decay
        self[result] += 1
        self["games"] += 1


class BattleSharedPayoff:
    """Win rates of all pairs of players; those of few games are 0.5."""

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        given = {"decay": 0.99, "min_win_rate_games": 8, **(cfg or {})}
        self._decay, self._min_games = given["decay"], given["min_win_rate_games"]
        if not 0 < self._decay <= 1:
            raise ConfigError(f"league.payoff.decay = {self._decay}: above 0 and at most 1")
        self._players: list[Any] = []
        self._known: set[str] = set()
        self._records: dict[str, BattleRecordDict] = {}

    def __getitem__(self, pair: tuple[Any, Any]) -> np.ndarray:
        """Win rates (H, A) of one or several home players against one or several others."""
        home, away = (list(p) if isinstance(p, (list, tuple)) else [p] for p in pair)
        return np.array([[self._win_rate(_id(h), _id(a)) for a in away] for h in home])

    def _win_rate(self, home: str, away: str) -> float:
        record = self._records.get(self.get_key(home, away))
        if record is None or record["games"] < self._min_games:
            return 0.5
        mine = "wins" if home <= away else "losses"
        return (record[mine] + 0.5 * record["draws"]) / record["games"]

    def get_key(self, home: str, away: str) -> str:
        return f"{home}-{away}" if home <= away else f"{away}-{home}"

    @property
    def players(self) -> list[Any]:
        return self._players

    def add_player(self, player: Any) -> None:
        self._players.append(player)
        self._known.add(_id(player))

    def update(self, job_info: Mapping[str, Any]) -> bool:
        """Count the games of a job; False if there is a player that nobody knows."""
        home, away = job_info["player_id"]
        if not {home, away} <= self._known:
            return False
        record = self._records.setdefault(self.get_key(home, away), BattleRecordDict())
        for result in _flat(job_info["result"]):
            if result not in POINTS:
                raise ValueError(f"result '{result}': one of {', '.join(RESULTS)}")
            seen = "draws" if home == away else result if home <= away else REVERSED[result]
            record.add(seen, self._decay)
        return True

    def games(self, home: Any, away: Any) -> float:
        """Decayed number of games of the pair."""
        record = self._records.get(self.get_key(_id(home), _id(away)))
        return 0.0 if record is None else record["games"]

    def __repr__(self) -> str:
        ids = [_id(player) for player in self._players]
        width = max(map(len, ids), default=0)
        rows = zip(ids, self[self._players, self._players] if ids else [], strict=True)
        return "\n".join(f"{i:<{width}}  {'  '.join(f'{x:.2f}' for x in row)}" for i, row in rows)


def create_payoff(cfg: Mapping[str, Any]) -> BattleSharedPayoff:
    kind = cfg.get("type", "battle")
    if kind != "battle":
        raise ConfigError(f"league.payoff.type = '{kind}': there is 'battle'")
    return BattleSharedPayoff({key: value for key, value in cfg.items() if key != "type"})


def _id(player: Any) -> str:
    return player if isinstance(player, str) else str(player.player_id)


def _flat(results: Sequence[Any]) -> list[str]:
    return [r for one in results for r in ([one] if isinstance(one, str) else one)]
