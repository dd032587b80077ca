"""What one seed of one task came to, and the training that finds it out."""

from __future__ import annotations

import json
import resource
import shutil
import sys
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from ledger.fingerprints import commit, files_of, fingerprint, here
from ledger.rows import ROWS
from ledger.tasks import FRESH_EPISODES, FRESH_SEED, Task, expert_file

_FILE = "outcome.json"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    seed: int
    steps: int | None
    """Env steps to the stop value; None if it was not reached within the limit.

    Of a task with a measure of its own: all that it trained.
    """
    mean: float
    """Return of the final checkpoint over fresh episodes, or the task's own measure ..."""
    error: float
    """... and its standard error."""
    seconds: float
    """Wall clock of the training."""
    commit: str
    date: str
    updates: int | None = None
    """Updates of the whole training."""
    cpu: float | None = None
    """Seconds of all processors; of a resumed training those since it was resumed."""
    code: str = ""
    """Fingerprint of the files that the training depends on (`ledger/fingerprints.py`)."""
    confirmed: str = ""
    """Commit at which other code was seen to make the same first updates."""

    def passed(self, goal: float) -> bool:
        return self.steps is not None and self.mean >= goal


def run_directory(root: Path, task: Task, seed: int) -> Path:
    return root / task.name / f"seed{seed}"


def forget_finished(root: Path, task: Task, seed: int) -> None:
    """Let the next run begin anew, unless there is one to go on with."""
    if load_outcome(root, task, seed) is not None:
        _stamp(run_directory(root, task, seed)).unlink()


def load_outcome(root: Path, task: Task, seed: int) -> Outcome | None:
    """What a finished run came to; None if there is none, or only one of another config."""
    directory = run_directory(root, task, seed)
    if not _is_of(directory, task) or not (directory / _FILE).is_file():
        return None
    return Outcome(**json.loads((directory / _FILE).read_text(encoding="utf-8")))


def load_curve(root: Path, task: Task, seed: int) -> list[dict[str, float]]:
    file = run_directory(root, task, seed) / "result.json"
    return json.loads(file.read_text(encoding="utf-8"))["curve"]


def run_seed(task: Task, seed: int, root: Path) -> Outcome | None:
    """Train, or go on with a training that was cut off; None if it was interrupted again."""
    directory = run_directory(root, task, seed)
    record_expert(task, root)
    code = fingerprint(files_of(task.name) or [], here)
    if not _is_of(directory, task) or _stamped(directory)[1:] != [code]:
        shutil.rmtree(directory, ignore_errors=True)
        directory.parent.mkdir(parents=True, exist_ok=True)
        _stamp(directory).write_text(f"{task.digest()}\n{code}", encoding="utf-8")
    result = _finished(directory) or _train(task, seed, directory)
    if result["interrupted"]:
        return None
    mean, error = _judged(task, directory, seed)
    reached = task.measure or (result["stop"] and result["env_step"] <= task.limit)
    outcome = Outcome(
        seed=seed,
        steps=result["env_step"] if reached else None,
        mean=round(mean, 4 if task.measure else 2),
        error=round(error, 4 if task.measure else 2),
        seconds=round(result["seconds"], 1),
        commit=commit(),
        date=date.today().isoformat(),
        updates=result["train_iter"],
        cpu=round(_cpu_seconds(), 1),
        code=code,
    )
    _write(directory / _FILE, asdict(outcome))
    return outcome


def record_expert(task: Task, root: Path) -> None:
    """Have the episodes that a task learns from; their expert is trained if it is not there."""
    from ding.entry.demo import make

    expert = task.expert
    if expert is None or expert_file(root, expert).is_file():
        return
    teacher = next(task for task in ROWS if task.name == expert.task)
    if load_outcome(root, teacher, 0) is None:
        run_seed(teacher, 0, root)
    path = expert_file(root, expert)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(run_directory(root, teacher, 0), expert.n_episode, path)


def _stamp(directory: Path) -> Path:
    """Beside the directory, since the run owns what is inside: names its config and code."""
    return directory.with_name(f"{directory.name}.digest")


def _stamped(directory: Path) -> list[str]:
    stamp = _stamp(directory)
    return stamp.read_text(encoding="utf-8").splitlines() if stamp.is_file() else []


def _is_of(directory: Path, task: Task) -> bool:
    return _stamped(directory)[:1] == [task.digest()]


def _finished(directory: Path) -> dict[str, Any] | None:
    """The result of a training that is over: to go on with it would be to train for too long."""
    file = directory / "result.json"
    result = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    return None if result is None or result["interrupted"] else result


def _train(task: Task, seed: int, directory: Path) -> dict[str, Any]:
    from ding.entry.serial import train
    from ding.league.run import STATE_NAME as LEAGUE_STATE
    from ding.league.run import LeagueRun
    from ding.pipeline.run import Run
    from ding.pipeline.state import STATE_NAME
    from ding.utils.limits import Limits

    names = (STATE_NAME, LEAGUE_STATE)
    begun = any((directory / "ckpt" / name).is_file() for name in names)
    if not begun:  # killed before its first checkpoint
        shutil.rmtree(directory, ignore_errors=True)
    configs = task.configs(directory)
    limits = Limits(env_step=task.limit)
    if "league" in configs[0]:
        with LeagueRun(configs, seed, limits, directory if begun else False) as league:
            return league.train()
    with Run(configs, seed, limits=limits, resume=directory if begun else False) as run:
        return train(run)


def _judged(task: Task, directory: Path, seed: int) -> tuple[float, float]:
    """Mean of fresh episodes, or the task's own measure, and its standard error."""
    from ledger import measures

    name = "fresh_return" if task.measure is None else task.measure.function
    return getattr(measures, name)(task, directory, seed)


def fresh_returns(task: Task, directory: Path, seed: int) -> np.ndarray:
    """One episode in each of many envs: every one has a seed, and so a start, of its own."""
    from ding.config import override
    from ding.entry.evaluation import evaluate
    from ledger.measures import last_checkpoint

    main, create = task.configs(directory)
    main = override(main, {"exp_name": str(directory / "fresh")})
    counts = ("env.evaluator_env_num", "env.n_evaluator_episode")
    main = override(main, dict.fromkeys(counts, FRESH_EPISODES))
    first = FRESH_SEED + seed * FRESH_EPISODES
    return np.array(evaluate([main, create], first, load_path=last_checkpoint(directory)).reward)


def _write(path: Path, content: dict[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main(name: str, seed: str, root: str) -> int:
    task = next(task for task in ROWS if task.name == name)
    return 130 if run_seed(task, int(seed), Path(root)) is None else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
