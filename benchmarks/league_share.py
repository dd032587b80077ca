"""`python -m benchmarks.league_share GAME POLICY`: what a league of eight spends its cores on.

Two processes play, one learns. Every process times what it does in envs, forwards and updates,
each by its share of the time in which it plays or learns; the processor time is that of all of
them and of what runs beside them. Importing this module begins the timing: processes that play do
it by `import_names`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchmarks.league import MIXED
from ding.config import override
from ding.entry.predefined import predefined_config
from ding.envs import BaseEnvManager
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.league.games_service import GamesService
from ding.league.run import LeagueRun
from ding.worker.battle import games
from ding.worker.learner import BaseLearner

SECONDS, FIRST_JOBS = 40.0, 16
USEFUL = ("envs", "forwards", "updates")
_PLACE = "DING_LEAGUE_SHARE"
"""In the environment of all processes: where each leaves what it has spent."""

spent: Counter[str] = Counter()
_inside = False


def _timed(key: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wall clock of the outermost of these calls: to ask for processor time costs too much."""

    def call(*args: Any, **kwargs: Any) -> Any:
        global _inside
        if _inside:
            return function(*args, **kwargs)
        _inside, began = True, time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[key] += time.perf_counter() - began
            _inside = False

    return call


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wall clock and processor time of a match that is played, or learned from."""

    def call(*args: Any) -> Any:
        began, cpu = time.perf_counter(), time.thread_time()
        try:
            return function(*args)
        finally:
            spent["wall"] += time.perf_counter() - began
            spent["cpu"] += time.thread_time() - cpu
            _leave()

    return call


def _leave() -> None:
    place = Path(os.environ[_PLACE]) / f"{os.getpid()}.json"
    unfinished = place.with_suffix(".tmp")
    unfinished.write_text(json.dumps(spent))
    unfinished.replace(place)


if _PLACE in os.environ:
    for manager in (BaseEnvManager, GymVectorEnvManager):
        manager.step = _timed("envs", manager.step)  # type: ignore[method-assign]
        manager.reset = _timed("envs", manager.reset)  # type: ignore[method-assign]
    games._asked = _timed("forwards", games._asked)
    BaseLearner.train = _timed("updates", BaseLearner.train)  # type: ignore[method-assign]
    GamesService.play = _whole(GamesService.play)  # type: ignore[method-assign]
    LeagueRun._learn = _whole(LeagueRun._learn)  # type: ignore[method-assign]


def config(game: str, policy: str, directory: Path) -> list[Any]:
    main, create = predefined_config(game, policy)
    main = override(main, {"exp_name": str(directory / "run")})
    league = {**main["league"], "active_players": MIXED, "collector_num": 2}
    names = [*create["env"]["import_names"], "benchmarks.league_share"]
    return [{**main, "league": league}, {**create, "env": {**create["env"], "import_names": names}}]


def cpu_seconds() -> float:
    """Of this process and all that it has started."""
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def left(directory: Path) -> dict[str, Counter[str]]:
    return {f.name: Counter(json.loads(f.read_text())) for f in directory.glob("*.json")}


def measured(game: str, policy: str, directory: Path) -> dict[str, float]:
    with LeagueRun(config(game, policy, directory)) as run:
        for _ in range(FIRST_JOBS):
            run.play()
        before, cpu, jobs, began = left(directory), cpu_seconds(), run.jobs, time.monotonic()
        while time.monotonic() - began < SECONDS:
            run.play()
        after, total, jobs = left(directory), cpu_seconds() - cpu, run.jobs - jobs
    useful: Counter[str] = Counter()
    for name, now in after.items():
        now.subtract(before.get(name, Counter()))
        for key in USEFUL:
            useful[key] += now[key] / now["wall"] * now["cpu"] if now["wall"] else 0.0
    shares = {key: round(useful[key] / total, 3) for key in USEFUL}
    share = round(sum(useful.values()) / total, 3)
    return {"jobs": jobs, "cpu_seconds": round(total, 1), **shares, "share": share}


def main(game: str = "tictactoe", policy: str = "league_ppo") -> None:
    """In a process that imports this module by its name, as those that play do."""
    with tempfile.TemporaryDirectory() as directory:
        command = "from pathlib import Path; from benchmarks.league_share import measured; "
        command += f"print('{game}', measured('{game}', '{policy}', Path('{directory}')))"
        known = {**os.environ, _PLACE: directory}
        subprocess.run([sys.executable, "-c", command], env=known, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
