"""Rows whose code has changed, but not what it computes: shown by the bits of the first updates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ding.utils.errors import DingError
from ledger.fingerprints import ROOT, commit, files_of, fingerprint, here, keep_files
from ledger.outcome import Outcome, record_expert
from ledger.status import Seed, Standing
from ledger.tasks import Task, expert_file

UPDATES = 50


def confirm(
    seeds: Sequence[Seed], runs: Path, say: Callable[[str], None]
) -> Iterator[tuple[Task, Outcome]]:
    """Of stale seeds those whose commit makes the same first updates as the tree that is here."""
    groups: dict[tuple[str, str], list[Seed]] = {}
    for seed in seeds:
        if seed.standing is Standing.STALE and seed.outcome is not None:
            groups.setdefault((seed.task.name, seed.outcome.commit), []).append(seed)
    for (name, origin), group in groups.items():
        task, outcomes = group[0].task, [s.outcome for s in group if s.outcome is not None]
        try:
            alike = _alike(task, outcomes[0].seed, origin, runs)
        except DingError as error:
            say(f"{name}: {error}")
            continue
        verdict = "the same weights: confirmed" if alike else "other weights: stale"
        say(f"{name}: {UPDATES} updates at {origin} and here give {verdict}")
        if alike:
            code = fingerprint(files_of(name) or [], here)
            yield from ((task, replace(o, code=code, confirmed=commit())) for o in outcomes)


def _alike(task: Task, seed: int, origin: str, runs: Path) -> bool:
    if origin.endswith("-dirty"):
        raise DingError(f"trained from a tree that no commit has ({origin}): train it again")
    ours = look(task, seed, runs)
    with tree_of(origin) as tree:
        return probed(tree, task, seed, runs)["digest"] == ours


def look(task: Task, seed: int, runs: Path) -> str:
    """Note which files a training of the task runs; returns the digest of its first updates."""
    record_expert(task, runs)
    found = probed(ROOT, task, seed, runs, "--trace")
    keep_files(task.name, found["files"])
    return str(found["digest"])


def probed(tree: Path, task: Task, seed: int, runs: Path, *options: str) -> Mapping[str, object]:
    """What `ledger/probe.py` of this tree says of a task in another."""
    settings = []
    if task.expert is not None:
        settings = [f"{task.expert.key}={expert_file(runs, task.expert)}"]
    script = str(Path(__file__).with_name("probe.py"))
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, script, task.probe_name, str(seed), str(UPDATES), directory]
        done = subprocess.run(
            [*command, *settings, *options],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DingError(f"its first updates can't be run in {tree.name}: {reason}")
    return json.loads(done.stdout.strip().splitlines()[-1])


@contextmanager
def tree_of(origin: str) -> Iterator[Path]:
    """The files of a commit in a directory of their own."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / origin
        added = _git("worktree", "add", "--detach", str(tree), origin)
        if added.returncode:
            raise DingError(f"commit {origin} is not in this repository")
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
