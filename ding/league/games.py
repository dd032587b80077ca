"""Games of a league as a file: one line each, ratings and payoffs worked out from them anew."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ding.league.league import BaseLeague
from ding.league.pictures import shown_players
from ding.league.player import ActivePlayer, HistoricalPlayer
from ding.utils.checkpoint import whole_file
from ding.utils.errors import CheckpointError
from ding.worker.battle import Game

NAME = "games.jsonl"
MOST_ROWS = 16
"""Rows of the table at most; `league.json` has all players."""


class GameFile:
    """Lines of games and of copies, in the order in which they came; only ever appended to."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self.path.touch()
        self.count = 0
        """Lines of this run."""

    def add(self, lines: Sequence[Mapping[str, Any]]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        self.count += len(lines)

    def cut(self, count: int) -> list[dict[str, Any]]:
        """Forget what came after the first `count` lines, which are returned."""
        with self.path.open(encoding="utf-8") as file:
            kept = [line for line, _ in zip(file, range(count), strict=False)]
        if len(kept) < count:
            raise CheckpointError(
                f"'{self.path}' has {len(kept)} lines, the saved league {count}: it was changed"
            )
        with whole_file(self.path) as out:
            out.write("".join(kept).encode())
        self.count = count
        return [json.loads(line) for line in kept]


def lines_of(job: int, games: Sequence[Game]) -> list[dict[str, Any]]:
    return [
        {
            "job": job,
            "index": index,
            "seats": list(game.seats),
            "result": list(game.result),
            "steps": game.steps,
            **({} if game.forfeit is None else {"forfeit": game.forfeit}),
            **({"reason": game.reason} if game.reason else {}),
        }
        for index, game in enumerate(games)
    ]


def copy_line(job: int, player: HistoricalPlayer) -> dict[str, Any]:
    return {
        "job": job,
        "copy": player.player_id,
        "parent": player.parent_id,
        "path": Path(player.checkpoint_path).name,
        "step": player.total_agent_step,
    }


def replay(league: BaseLeague, lines: Sequence[Mapping[str, Any]]) -> None:
    """Bring a new league to where these lines leave it: copies, payoffs, ratings."""
    for line in lines:
        if "copy" in line:
            league.add_historical(_copied(league, line))
        else:
            count(league, line)


def count(league: BaseLeague, line: Mapping[str, Any]) -> None:
    """Let one game change payoff and ratings."""
    (home, away), result = line["seats"], line["result"][0]
    league.finish_job({"player_id": [home, away], "result": [result], "eval_flag": True})


def _copied(league: BaseLeague, line: Mapping[str, Any]) -> HistoricalPlayer:
    parent = league.get_player_by_id(line["parent"])
    assert isinstance(parent, ActivePlayer)
    parent.total_agent_step = line["step"]
    return parent.snapshot(league.metric_env)


def table(league: BaseLeague, most: int = MOST_ROWS) -> str:
    """The best players by skill, with what is sure of it, their Elo and mean rate of winning."""
    rows = [f"{'player':<44} {'skill':>6} {'95 %':>14} {'elo':>6} {'wins':>5}"]
    players = shown_players(league, most)
    rows += [_row(league, player) for player in players]
    hidden = len(league.active_players) + len(league.historical_players) - len(players)
    return "\n".join([*rows, *([f"and {hidden:,} more in league.json"] if hidden else [])])


def _ranked(league: BaseLeague) -> list[Any]:
    players = (*league.active_players, *league.historical_players)
    return sorted(players, key=lambda player: -player.rating.mu)


def _row(league: BaseLeague, player: Any) -> str:
    low, high = player.rating.interval
    others = [
        p for p in league.payoff.players if p is not player and league.payoff.games(player, p)
    ]
    wins = f"{league.payoff[player, others].mean():.2f}" if others else "-"
    interval = f"{low:.1f}..{high:.1f}"
    rating = player.rating
    return f"{player.player_id:<44} {rating.mu:>6.2f} {interval:>14} {rating.elo:>6.0f} {wins:>5}"


def summary(league: BaseLeague) -> Iterator[dict[str, Any]]:
    """One entry per player, the best first."""
    for player in _ranked(league):
        low, high = player.rating.interval
        yield {
            "player": player.player_id,
            "parent": getattr(player, "parent_id", None),
            "checkpoint": player.checkpoint_path,
            "train_iter": player.total_agent_step,
            "mu": player.rating.mu,
            "sigma": player.rating.sigma,
            "interval": [low, high],
            "elo": player.rating.elo,
        }
