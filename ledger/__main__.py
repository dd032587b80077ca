"""`python -m ledger`: train what is stale or missing, and write down what was reached."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ding.utils.errors import DingError, nearest
from ledger import peer
from ledger.compare import Finding, alarms, compare
from ledger.confirm import confirm, look
from ledger.defaults import DefaultTask
from ledger.fingerprints import check_clean, files_of
from ledger.outcome import Outcome, forget_finished, load_outcome, run_directory
from ledger.report import (
    Stored,
    draw,
    keep_curves,
    markdown,
    merged,
    read_results,
    with_short_table,
    write_results,
)
from ledger.rows import ROWS
from ledger.status import due, seeds_of, table
from ledger.tasks import Task

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"

Job = tuple[Task, int]


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m ledger", description=__doc__)
    p.add_argument("--only", action="append", metavar="TASK", help="this task; may be repeated")
    p.add_argument("--seeds", type=int, nargs="+", metavar="K", help="these seeds only")
    p.add_argument("--fresh", action="store_true", help="train what is fresh again as well")
    p.add_argument("--status", action="store_true", help="what is fresh, stale or missing")
    p.add_argument(
        "--confirm",
        action="store_true",
        help="compare the first updates of stale seeds with those of their commits",
    )
    p.add_argument("--defaults", action="store_true", help="the suite of defaults instead")
    p.add_argument(
        "--peer",
        metavar="PYTHON",
        help="with --defaults: train Stable-Baselines3's with this interpreter",
    )
    p.add_argument("--store", action="store_true", help="write finished runs down, train nothing")
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
        return run(args)
    except DingError as error:
        _say(f"ledger: error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("ledger: interrupted; the same command goes on")
        return 130


def run(args: argparse.Namespace) -> int:
    tasks = chosen(args.only, defaults=args.defaults)
    runs, n_slot = HERE / "runs", max(1, args.jobs)
    if args.peer:
        defaults = [task for task in tasks if isinstance(task, DefaultTask)]
        peer.train([(t, s) for t in defaults for s in args.seeds or t.seeds], args.peer, _say)
        write({})
        return 0
    if args.store:
        return record([(t, s) for t in tasks for s in args.seeds or t.seeds], runs, [])
    if args.check:
        # Seeds that nobody has chosen, and none of the runs of an older state of the code.
        drawn = args.seeds or [1000 + secrets.randbelow(100_000) for _ in range(3)]
        jobs = [(t, s) for t in tasks for s in drawn[: len(t.seeds)]]
        return check(jobs, runs / "check", train(jobs, runs / "check", n_slot=n_slot))
    seeds = seeds_of(tasks, read_results(RESULTS))
    if args.seeds:
        seeds = [seed for seed in seeds if seed.number in args.seeds]
    if args.status:
        _say(table(seeds))
        return 0
    check_clean()
    if args.confirm:
        for task, outcome in confirm(seeds, runs, _say):
            write({task.name: [outcome]})
        return 0
    # Each seed is written down when it ends: whoever stops this loses nothing.
    by_choice = args.fresh or args.only or args.seeds
    wanted = [s for s in seeds if args.fresh or s.is_due] if by_choice else due(seeds)
    jobs = [(seed.task, seed.number) for seed in wanted]
    failed = train(jobs, runs, n_slot=n_slot, ended=lambda job: store([job], runs))
    return record(jobs, runs, failed)


def chosen(names: Sequence[str] | None, *, defaults: bool = False) -> list[Task]:
    by_name = {task.name: task for task in ROWS}
    for name in names or []:
        if name not in by_name:
            raise DingError(f"no task '{name}' in the ledger{nearest(name, by_name)}")
    if names:
        return [by_name[name] for name in names]
    return [task for task in ROWS if isinstance(task, DefaultTask) == defaults]


def train(
    jobs: Sequence[Job],
    root: Path,
    *,
    n_slot: int,
    ended: Callable[[Job], None] = lambda job: None,
) -> list[Job]:
    """Train in processes of their own, `n_slot` at once; returns the jobs that failed.

    What was cut off goes on where it stopped; what was finished by other code begins anew.
    """
    waiting = list(jobs)
    for task, seed in waiting:
        forget_finished(root, task, seed)
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
    if files_of(task.name) is None:
        look(task, seed, root)
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
    write(new)
    for task in ROWS:
        if task.name in new:
            present = [s for s in task.seeds if load_outcome(root, task, s) is not None]
            curves = keep_curves(HERE / "curves.json", root, task, present)
            if not isinstance(task, DefaultTask):
                draw(HERE, task, curves)
    return new


def write(new: Stored) -> None:
    """These outcomes beside those that are stored."""
    results = merged(read_results(RESULTS), new)
    write_results(RESULTS, results)
    (HERE / "README.md").write_text(markdown(results), encoding="utf-8")
    readme = HERE.parent / "README.md"
    if readme.is_file():
        text = with_short_table(readme.read_text(encoding="utf-8"), results)
        readme.write_text(text, encoding="utf-8")


def record(jobs: Sequence[Job], root: Path, failed: Sequence[Job]) -> int:
    """Write what all seeds came to; 1 if any of these did not pass."""
    new = store(jobs, root)
    passed = all(o.passed(t.goal) for t in ROWS for o in new.get(t.name, []))
    _say(f"written to {HERE.name}/: results.json, curves.json, README.md and pictures")
    return 0 if passed and not failed else 1


def check(jobs: Sequence[Job], root: Path, failed: Sequence[Job]) -> int:
    """Compare with the stored results; 1 if a seed fails or they are worse than by chance."""
    stored, new = read_results(RESULTS), _outcomes(jobs, root)
    findings: list[Finding] = []
    for task in ROWS:
        if task.name in new and task.name in stored:
            findings += compare(task, stored[task.name], new[task.name])
    worse = alarms(findings)
    for f in findings:
        verdict = "WORSE" if f in worse else "ok"
        _say(f"{f.task}: {f.what} {f.before:,.1f} -> {f.after:,.1f}, p = {f.p:.3f}: {verdict}")
    missed = [
        f"{t.name} seed {o.seed}" for t in ROWS for o in new.get(t.name, []) if not o.passed(t.goal)
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
