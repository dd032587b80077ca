"""`python -m benchmarks --only league`: a league of 1,000 players, and one that is killed 20 times.

*payoff*: jobs of a league with 8 active players and a million games behind it: who plays whom, the
games counted, whether to copy. *kills*: SIGKILL for a league at any moment, then `--resume`; no
game that was saved may be lost or counted twice, and ratings have to be those that the stored games
give. Writes benchmarks/league.json.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measure import HERE, BenchmarkError, say, stamp
from ding.config import override
from ding.entry.predefined import predefined_config
from ding.league.games import count, replay
from ding.league.league import BaseLeague, create_league
from ding.league.player import ActivePlayer
from ding.league.run import STATE_NAME, LeagueRun
from ding.utils.checkpoint import load_checkpoint
from ding.utils.limits import Limits

PLAYERS, GAMES, GAMES_OF_A_JOB, JOBS = 1_000, 1_000_000, 64, 400
JOB_GOAL = 10.0
"""Milliseconds."""
KILLS, PAUSE = 20, 1.5
MIXED = dict(main_player=4, main_exploiter=2, league_exploiter=2)
LEAGUE: dict[str, Any] = dict(
    active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
    main_player=dict(one_phase_step=60),
    main_exploiter=dict(one_phase_step=60),
    league_exploiter=dict(one_phase_step=60),
)
_PATIENCE = 60.0


# --- payoff ------------------------------------------------------------------------------------


def grown_league(directory: Path, players: int, games: int, seed: int = 0) -> BaseLeague:
    """Of so many players, active ones and copies of them, after so many games by chance."""
    league = create_league({"active_players": MIXED, "path_policy": str(directory)})
    league.seed(seed)
    rng, active = np.random.default_rng(seed), league.active_players
    for step in range(1, players - len(active) + 1):
        parent = active[step % len(active)]
        parent.total_agent_step = step
        league.add_historical(parent.snapshot(league.metric_env))
    names = [p.player_id for p in (*active, *league.historical_players)]
    jobs = games // GAMES_OF_A_JOB
    homes, others = rng.integers(len(active), size=jobs), rng.integers(players, size=jobs)
    for home, other in zip(homes.tolist(), others.tolist(), strict=True):
        if home != other:
            finish(league, names[home], names[other], rng)
    return league


def finish(league: BaseLeague, home: str, other: str, rng: np.random.Generator) -> None:
    """Count the games of a job as a run does, one by one."""
    for result in rng.choice(["wins", "draws", "losses"], GAMES_OF_A_JOB, p=[0.5, 0.1, 0.4]):
        count(league, {"seats": [home, other], "result": [str(result)]})


def job_seconds(league: BaseLeague, jobs: int) -> list[float]:
    """Processor time of each of the next jobs: deal, count, and see whether to copy."""
    found, rng = [], np.random.default_rng(1)
    for _ in range(jobs):
        began = time.process_time()
        home, other = league.get_job_info()["player_id"]
        finish(league, home, other, rng)
        player = league.get_player_by_id(home)
        assert isinstance(player, ActivePlayer)
        player.total_agent_step += 1
        player.is_trained_enough()
        found.append(time.process_time() - began)
    return found


def payoff(quick: bool) -> dict[str, Any]:
    games = GAMES // 10 if quick else GAMES
    with tempfile.TemporaryDirectory() as directory:
        began = time.process_time()
        league = grown_league(Path(directory), PLAYERS, games)
        counted = time.process_time() - began
        milliseconds = 1000 * np.array(job_seconds(league, JOBS))
    row = {
        "players": PLAYERS,
        "games": games,
        "seconds_to_count_them": round(counted, 1),
        "job_ms_median": round(float(np.median(milliseconds)), 2),
        "job_ms_99": round(float(np.quantile(milliseconds, 0.99)), 2),
        "goal_ms": JOB_GOAL,
    }
    say(f"payoff: {row}")
    return row


# --- kills -------------------------------------------------------------------------------------


def config(directory: Path) -> list[Any]:
    main, create = predefined_config("league_demo", "ppo")
    return [{**override(main, {"exp_name": str(directory / "run")}), "league": LEAGUE}, create]


def kills(directory: Path, n: int, *, pause: float, more: int = 2_000) -> dict[str, Any]:
    """Kill a league so often, let it end, and count its games; raises where one is wrong.

    Each kill comes at most `pause` seconds after the first save since the last one.
    """
    rng, run = random.Random(0), directory / "run"
    saved: list[str] = []
    lost: list[int] = []
    for _ in range(n):
        before = _saved_at(run)
        process = _begun(directory, sys.maxsize)
        _await_save(run, before, process)
        time.sleep(rng.uniform(0, pause))
        process.kill()
        process.join()
        lines = _lines(run)
        kept = _state(run)["lines"]
        if lines[: len(saved)] != saved:
            raise BenchmarkError("a game that was saved is gone or has changed")
        saved = lines[:kept]
        lost.append(len(lines) - kept)
    process = _begun(directory, _state(run)["envstep"] + more)
    process.join()
    if process.exitcode:
        raise BenchmarkError(f"the league ended with code {process.exitcode}")
    return {"kills": n, **_checked(directory, saved), "unsaved_lines_median": median(lost)}


def _begun(directory: Path, env_steps: int) -> Any:
    process = multiprocessing.get_context("fork").Process(
        target=_played, args=(directory, env_steps), daemon=True
    )
    process.start()
    return process


def _played(directory: Path, env_steps: int) -> None:
    limits = Limits(env_step=env_steps)
    with LeagueRun(config(directory), 0, limits, resume=True, or_begin=True) as run:
        run.train()


def _await_save(run: Path, before: int, process: Any) -> None:
    """Until the league has saved again since this moment."""
    began = time.monotonic()
    while _saved_at(run) == before or not _lines(run):
        if not process.is_alive() or time.monotonic() - began > _PATIENCE:
            raise BenchmarkError("the league did not go on")
        time.sleep(0.001)


def _saved_at(run: Path) -> int:
    path = run / "ckpt" / STATE_NAME
    return path.stat().st_mtime_ns if path.is_file() else 0


def _state(run: Path) -> dict[str, Any]:
    return load_checkpoint(run / "ckpt" / STATE_NAME, trusted=True)


def _lines(run: Path) -> list[str]:
    """All but a last line that was being written."""
    text = (run / "games.jsonl").read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


def _checked(directory: Path, saved: Sequence[str]) -> dict[str, Any]:
    run = directory / "run"
    lines = _lines(run)
    if lines[: len(saved)] != list(saved):
        raise BenchmarkError("a game that was saved is gone or has changed")
    stored = [json.loads(line) for line in lines]
    games = [(line["job"], line["index"]) for line in stored if "seats" in line]
    per_job = set(Counter(job for job, _ in games).values())
    if len(set(games)) != len(games) or len(per_job) != 1:
        raise BenchmarkError(f"games were counted twice or left out: {per_job} of a job")
    again = create_league({**LEAGUE, "path_policy": str(directory / "again")})
    replay(again, stored)
    told = json.loads((run / "league.json").read_text(encoding="utf-8"))["players"]
    for player in told:
        rating = again.get_player_by_id(player["player"]).rating
        if (rating.mu, rating.sigma, rating.elo) != (player["mu"], player["sigma"], player["elo"]):
            raise BenchmarkError(f"the rating of {player['player']} is not that of its games")
    return {"games": len(games), "players": len(told)}


def run(quick: bool) -> str:
    about = {**stamp(), "quick": quick}
    found = {"payoff": payoff(quick)}
    with tempfile.TemporaryDirectory() as directory:
        found["kills"] = kills(Path(directory), 3 if quick else KILLS, pause=PAUSE)
    say(f"kills: {found['kills']}")
    if not quick:
        (HERE / "league.json").write_text(json.dumps(about | found, indent=1) + "\n")
    job, killed = found["payoff"], found["kills"]
    return (
        f"payoff: {job['players']:,} players, {job['games']:,} games: {job['job_ms_median']} ms "
        f"per job of {GAMES_OF_A_JOB} games (99 % below {job['job_ms_99']}), goal {JOB_GOAL:g}\n"
        f"kills: {killed['kills']} in {killed['games']:,} games, each counted once; ratings of "
        f"{killed['players']} players are those of the stored games"
    )
