"""`python -m ledger`: train what is missing, then write down what was reached."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ding.utils.errors import DingError, nearest
from ledger.compare import Finding, alarms, compare
from ledger.outcome import Outcome, forget, load_outcome, run_directory
from ledger.report import (
    Stored,
    draw,
    keep_curves,
    markdown,
    merged,
    read_results,
    write_results,
)
from ledger.tasks import TASKS, Task

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"

Job = tuple[Task, int]


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m ledger", description=__doc__)
    p.add_argument("--only", action="append", metavar="TASK", help="this task; may be repeated")
    p.add_argument("--seeds", type=int, nargs="+", metavar="K", help="these seeds only")
    p.add_argument("--fresh", action="store_true", help="train finished seeds again as well")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="trainings at once")
    p.add_argument(
        "--check",
        action="store_true",
        help="train anew beside the stored results, change nothing, exit 1 if they got worse",
    )
    return p


def main(argv: Sequence[str] | None = None) -> int:
    args = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        jobs = [(t, s) for t in chosen(args.only) for s in args.seeds or t.seeds]
        root = HERE / "runs" / "check" if args.check else HERE / "runs"
        # A check that went by finished runs of an older state of the code would prove nothing.
        n_slot, fresh = max(1, args.jobs), args.fresh or args.check
        if args.check:
            return check(jobs, root, run_missing(jobs, root, n_slot=n_slot, fresh=fresh))
        # Each seed is written down when it ends: whoever stops this loses nothing.
        failed = run_missing(
            jobs, root, n_slot=n_slot, fresh=fresh, ended=lambda job: store([job], root)
        )
        return record(jobs, root, failed)
    except DingError as error:
        _say(f"ledger: error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("ledger: interrupted; the same command goes on")
        return 130


def chosen(names: Sequence[str] | None) -> list[Task]:
    by_name = {task.name: task for task in TASKS}
    for name in names or []:
        if name not in by_name:
            raise DingError(f"no task '{name}' in the ledger{nearest(name, by_name)}")
    return [task for task in TASKS if not names or task.name in names]


def run_missing(
    jobs: Sequence[Job],
    root: Path,
    *,
    n_slot: int,
    fresh: bool,
    ended: Callable[[Job], None] = lambda job: None,
) -> list[Job]:
    """Train in processes of their own, `n_slot` at once; returns the jobs that failed."""
    if fresh:
        for task, seed in jobs:
            forget(run_directory(root, task, seed))
    waiting = [(t, s) for t, s in jobs if load_outcome(root, t, s) is None]
    running: dict[subprocess.Popen[bytes], Job] = {}
    failed: list[Job] = []
    try:
        while waiting or running:
            while waiting and len(running) < n_slot:
                job = waiting.pop(0)
                running[_start(job, root, n_slot)] = job
            for process in [p for p in running if p.poll() is not None]:
                job = running.pop(process)
                failed += _ended(job, root)
                ended(job)
            time.sleep(0.1)
    finally:
        for process in running:
            process.terminate()  # they save what they have
        for process in running:
            process.wait()
    return failed


def _start(job: Job, root: Path, n_slot: int) -> subprocess.Popen[bytes]:
    task, seed = job
    # Several trainings with threads on all cores each would mostly wait for one another.
    threads = max(1, (os.cpu_count() or 1) // n_slot)
    directory = run_directory(root, task, seed)
    directory.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ledger.outcome", task.name, str(seed), str(root)]
    with directory.with_name(f"{directory.name}.log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=HERE.parent,
            env={"OMP_NUM_THREADS": str(threads)} | os.environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _ended(job: Job, root: Path) -> list[Job]:
    task, seed = job
    outcome = load_outcome(root, task, seed)
    if outcome is None:
        log = run_directory(root, task, seed).with_suffix(".log")
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        _say(f"{task.name} seed {seed}: failed: {' '.join(last)} (see {log})")
        return [job]
    verdict = "passed" if outcome.passed(task.goal) else "did not pass"
    trained = "not reached" if outcome.steps is None else f"{outcome.steps:,}"
    _say(
        f"{task.name} seed {seed}: {verdict}: env steps to the stop value or limit {trained}, "
        f"{task.judged_by} {task.shown(outcome.mean)} (goal {task.goal:g}), {outcome.seconds:.0f} s"
    )
    return []


def store(jobs: Sequence[Job], root: Path) -> Stored:
    """Write what these seeds came to: results, curves, pictures and the page."""
    new = _outcomes(jobs, root)
    results = merged(read_results(RESULTS), new)
    write_results(RESULTS, results)
    (HERE / "README.md").write_text(markdown(results), encoding="utf-8")
    for task in TASKS:
        if task.name in new:
            present = [s for s in task.seeds if load_outcome(root, task, s) is not None]
            draw(HERE, root, task, present)
            keep_curves(HERE / "curves.json", root, task, present)
    return new


def record(jobs: Sequence[Job], root: Path, failed: Sequence[Job]) -> int:
    """Write what all seeds came to; 1 if any of these did not pass."""
    new = store(jobs, root)
    passed = all(o.passed(t.goal) for t in TASKS for o in new.get(t.name, []))
    _say(f"written to {HERE.name}/: results.json, curves.json, README.md and pictures")
    return 0 if passed and not failed else 1


def check(jobs: Sequence[Job], root: Path, failed: Sequence[Job]) -> int:
    """Compare with the stored results; 1 if a seed fails or they are worse than by chance."""
    stored, new = read_results(RESULTS), _outcomes(jobs, root)
    findings: list[Finding] = []
    for task in TASKS:
        if task.name in new and task.name in stored:
            findings += compare(task, stored[task.name], new[task.name])
    worse = alarms(findings)
    for f in findings:
        verdict = "WORSE" if f in worse else "ok"
        _say(f"{f.task}: {f.what} {f.before:,.1f} -> {f.after:,.1f}, p = {f.p:.3f}: {verdict}")
    missed = [
        f"{t.name} seed {o.seed}"
        for t in TASKS
        for o in new.get(t.name, [])
        if not o.passed(t.goal)
    ]
    if missed:
        _say(f"did not pass: {', '.join(missed)}")
    return 1 if worse or missed or failed else 0


def _outcomes(jobs: Sequence[Job], root: Path) -> Stored:
    found: dict[str, list[Outcome]] = {}
    for task, seed in jobs:
        outcome = load_outcome(root, task, seed)
        if outcome is not None:
            found.setdefault(task.name, []).append(outcome)
    return found


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
