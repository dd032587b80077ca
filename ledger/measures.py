"""Measures of trained players of games: one number for each, the higher the better."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ding.league.rating import POINTS
from ledger.tasks import FRESH_SEED, Task

if TYPE_CHECKING:
    from ding.worker.battle import Game

GAMES = 1_000
"""At either seat against each opponent."""
_ENVS = 20


class Measured(NamedTuple):
    value: float
    error: float
    """Standard error; 0 of what is computed exactly."""


Measure = Callable[[Task, Path, int], Measured]
"""Of a task's finished training in this directory, by this seed."""


def fresh_return(task: Task, directory: Path, seed: int) -> Measured:
    """Mean of fresh episodes."""
    from ledger.outcome import fresh_returns

    returns = fresh_returns(task, directory, seed)
    return Measured(float(returns.mean()), float(returns.std(ddof=1)) / len(returns) ** 0.5)


def tictactoe(task: Task, directory: Path, seed: int) -> Measured:
    """Share won as the first against random, less one for each game lost to anybody."""
    others = {"random": "random", "perfect": "dizoo.board_games.envs.tictactoe_env:perfect"}
    games = _games("tictactoe", last_checkpoint(directory), others, seed, GAMES)
    lost = sum(game.result[game.seats.index("own")] == "losses" for game in games)
    won = [game.result[0] == "wins" for game in games if game.seats == ("own", "random")]
    share = float(np.mean(won))
    return Measured(share - lost, (share * (1 - share) / len(won)) ** 0.5)


def connect_four(task: Task, directory: Path, seed: int) -> Measured:
    """Share won against random, at both seats."""
    games = _games("connect_four", last_checkpoint(directory), {"random": "random"}, seed, GAMES)
    won = [game.result[game.seats.index("own")] == "wins" for game in games]
    share = float(np.mean(won))
    return Measured(share, (share * (1 - share) / len(won)) ** 0.5)


def older_half(task: Task, directory: Path, seed: int) -> Measured:
    """Least rate of winning of the main player against a copy from the first half of its league.

    As leagues play and count: moves are drawn, a draw is half a win.
    """
    text = (directory / "games.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    old = [one for one in lines if "copy" in one and 2 * one["job"] <= lines[-1]["job"]]
    others = {one["copy"]: str(directory / "ckpt" / one["path"]) for one in old}
    game = task.name.removesuffix("_league_mappo")
    games = _games(game, last_checkpoint(directory), others, seed, GAMES // 5, sample=True)
    points: dict[str, list[float]] = {name: [] for name in others}
    for one in games:
        own = one.seats.index("own")
        points[one.seats[1 - own]].append(POINTS[one.result[own]])
    worst = min(points.values(), key=np.mean)
    return Measured(float(np.mean(worst)), float(np.std(worst)) / len(worst) ** 0.5)


def exploitability(task: Task, directory: Path, seed: int) -> Measured:
    """Exploitability of the average of all snapshots, negative."""
    from ding.envs.base_env import get_env_cls
    from ding.league.exploitability import GameTree
    from ding.pipeline.run import Run

    configs = task.configs(directory)
    tree = GameTree(get_env_cls(configs[1]["env"])())
    with Run(configs, seed, resume=directory) as run:
        found = run.collector.past.probabilities(tree.obs)
    # Floats of a network do not sum to one exactly.
    past = [chances / chances.sum(axis=1, keepdims=True) for chances in found * tree.mask]
    return Measured(-tree.exploitability(tree.average(past)), 0.0)


def last_checkpoint(directory: Path) -> Path:
    """That of a run, or of the first active player of a league."""
    league = directory / "league.json"
    if not league.is_file():
        result = json.loads((directory / "result.json").read_text(encoding="utf-8"))
        return directory / "ckpt" / f"iteration_{result['train_iter']}.pth.tar"
    players = json.loads(league.read_text(encoding="utf-8"))["players"]
    active = sorted(p["player"] for p in players if p["parent"] is None)
    main = next((name for name in active if name.startswith("main_player")), active[0])
    return directory / "ckpt" / f"{main}_ckpt.pth"


def _games(
    game: str,
    checkpoint: Path,
    others: dict[str, str],
    seed: int,
    count: int,
    *,
    sample: bool = False,
) -> list[Game]:
    """So many games of the checkpoint at either seat against each opponent.

    `sample`: all are checkpoints that draw their moves.
    """
    from ding.entry.versus import game_env, pairs_of
    from ding.utils.seed import set_pkg_seed
    from ding.worker.battle import opponent_of
    from ding.worker.battle.games import Table
    from ding.worker.battle.match import Match
    from ding.worker.battle.opponents import frozen

    set_pkg_seed(FRESH_SEED + seed)
    with game_env(game, _ENVS, FRESH_SEED + seed) as env:
        env.launch()
        space = env.action_space.one
        modes = {
            name: frozen(Path(one), sample=True) if sample else opponent_of(one, space)
            for name, one in {"own": str(checkpoint), **others}.items()
        }
        pairs = [p for other in others for p in pairs_of(["own", other], 2 * count)]
        return Match(env, Table(modes, env, lambda env_id: pairs[0]), pairs).play()
