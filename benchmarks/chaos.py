"""`python -m benchmarks --only chaos`: `ding -m parallel` while its processes are killed.

DQN on CartPole, 100 times SIGKILL for a collector, the learner, the buffer or the evaluator, at
any moment, and a few times for the command itself, which is then resumed. The goal is out of reach
until all of that is over (`chaos_env`); then it has to be reached. No counter may run back, every
chunk has to be accounted for and no process may be left. Writes benchmarks/chaos.json.
"""

from __future__ import annotations

import json
import os
import pty
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any
from uuid import uuid4

import psutil

from benchmarks.chaos_env import GATE, SHUT_STEPS
from benchmarks.measure import HERE, BenchmarkError, say, stamp
from ding.parallel.checkpointing import MANIFEST

KILLS, QUICK_KILLS = 100, 8
COMMAND_EVERY = 20
"""Of so many kills one is of the command."""
ROLES = ("collector", "learner", "buffer", "evaluator")
PAUSE = (0.0, 8.0)
"""Seconds between two kills: many hit a service that is just being replaced ..."""
CALM_EVERY = 3
"""... but after one of so many the run has the time to recover: that is the time to be told."""
SHOWN_LATE = 0.3
"""Seconds until what was done before a kill is shown for sure: only then is more of it news."""
PATIENCE = 300.0
MARK = "DING_CHAOS_RUN"
"""In the environment of all processes of a run, those without a parent too."""

MAIN = dict(
    exp_name="run",
    checkpoint_seconds=1.0,
    env=dict(
        env_id="benchmarks.chaos_env:GatedCartPole-v0",
        collector_env_num=4,
        evaluator_env_num=4,
        n_evaluator_episode=8,
        stop_value=195,
    ),
    policy=dict(
        nstep=3,
        discount_factor=0.97,
        model=dict(encoder_hidden_size_list=[128, 128, 64]),
        learn=dict(batch_size=64, learning_rate=0.001, update_per_collect=4),
        collect=dict(n_sample=16, collector=dict(collector_num=2)),
        eval=dict(evaluator=dict(eval_freq=64)),
        other=dict(
            eps=dict(type="exp", start=0.95, end=0.1, decay=5000),
            replay_buffer=dict(replay_buffer_size=20000),
        ),
    ),
)


@dataclass
class Kill:
    role: str
    at: float
    """Seconds since the first one."""
    counters: tuple[int, int]
    calm: bool
    """Whether it had the time to recover before the next one."""
    stored: float | None = None
    """Seconds until the next chunk was stored ..."""
    updated: float | None = None
    """... and until the next update was made."""

    @property
    def recovered(self) -> bool:
        return self.stored is not None and self.updated is not None

    def note(self, seconds: float, counters: tuple[int, int]) -> None:
        if seconds < SHOWN_LATE and self.role != "command":
            self.counters = counters
            return
        if self.stored is None and counters[0] > self.counters[0]:
            self.stored = seconds
        if self.updated is None and counters[1] > self.counters[1]:
            self.updated = seconds


class Command:
    """`ding -m parallel`, before a terminal: there it tells its counters five times a second."""

    _LINE = re.compile(rb"env steps ([\d,]+)\S*  updates ([\d,]+)")

    def __init__(self, directory: Path, mark: str, *, resume: bool) -> None:
        command = [sys.executable, "-m", "ding.entry.cli", "-m", "parallel", "-c", "cfg.py"]
        command += ["-s", "0", *(["--resume"] if resume else [])]
        known = {MARK: mark, GATE: str(directory / "open"), "PYTHONPATH": str(HERE.parent)}
        own, other = pty.openpty()
        self.process = subprocess.Popen(
            command, cwd=directory, env=os.environ | known, stdout=other, stderr=other
        )
        os.close(other)
        self.counters = (0, 0)
        self.ran_back: list[str] = []
        self.said = b""
        self._reader = threading.Thread(target=self._read, args=(own,), daemon=True)
        self._reader.start()

    def _read(self, terminal: int) -> None:
        with suppress(OSError), open(terminal, "rb", buffering=0) as stream:
            while text := stream.read(65536):
                self.said = (self.said + text)[-20000:]
                if found := self._LINE.findall(text):
                    steps, updates = (int(n.replace(b",", b"")) for n in found[-1])
                    self._note((steps, updates))

    def _note(self, counters: tuple[int, int]) -> None:
        if any(new < old for new, old in zip(counters, self.counters, strict=True)):
            self.ran_back.append(f"shown: {self.counters} -> {counters}")
        self.counters = counters

    def services(self) -> dict[str, list[psutil.Process]]:
        found: dict[str, list[psutil.Process]] = {role: [] for role in ROLES}
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self.process.pid).children(recursive=True):
                for role in ROLES:
                    if _title(process).startswith(f"ray::{role}"):
                        found[role].append(process)
        return found

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join(5)


def _title(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


@dataclass
class Chaos:
    directory: Path
    seed: int = 0
    kills: list[Kill] = field(default_factory=list)
    ran_back: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random, self._mark = random.Random(self.seed), uuid4().hex
        self._began = time.monotonic()
        self._ledger: dict[str, int] = {}
        main = f"main_config = {MAIN!r}\n"
        create = "create_config = dict(policy=dict(type='dqn'))\n"
        system = "system_config = dict(coordinator=dict(head_start=False))\n"
        (self.directory / "cfg.py").write_text(main + create + system)
        self._command = Command(self.directory, self._mark, resume=False)

    def run(self, kills: int) -> dict[str, Any]:
        try:
            self._await("no first checkpoint", self._saved)
            self._began = time.monotonic()
            for number in range(1, kills + 1):
                self._watch(self._random.uniform(*PAUSE))
                if number % COMMAND_EVERY == COMMAND_EVERY // 2 or number == kills == QUICK_KILLS:
                    self._kill_command()
                else:
                    self._kill_service(calm=number % CALM_EVERY == 0)
                if self.kills[-1].calm:
                    self._await("no recovery", lambda: self.kills[-1].recovered)
            (self.directory / "open").touch()
            self._await("goal not reached", lambda: self._command.process.poll() is not None)
        finally:
            self._command.end()
            self.ran_back += self._command.ran_back
            self._note_orphans()
        return self._found()

    # --- kills ---------------------------------------------------------------------------------

    def _kill_service(self, calm: bool) -> None:
        role = self._random.choice(ROLES)
        found: list[psutil.Process] = []

        def there() -> bool:
            found[:] = self._command.services()[role]
            return bool(found)

        self._await(f"no {role}", there)
        victim = self._random.choice(found)
        at = time.monotonic() - self._began
        self._note_kill(Kill(role, at, self._command.counters, calm))
        with suppress(psutil.NoSuchProcess):
            victim.kill()

    def _kill_command(self) -> None:
        """Nothing of it may be left; what it had saved goes on."""
        at = time.monotonic() - self._began
        self._command.end()
        self.ran_back += self._command.ran_back
        self._look()  # at its last checkpoint: from there it goes on
        saved = (self._ledger["env_steps"], self._ledger["updates"])
        self._note_kill(Kill("command", at, saved, calm=True))
        self._note_orphans()
        self._command = Command(self.directory, self._mark, resume=True)

    def _note_kill(self, kill: Kill) -> None:
        self.kills.append(kill)
        number, counters = len(self.kills), kill.counters
        say(f"{kill.at:6.1f} s, kill {number}: {kill.role}; env steps, updates: {counters}")

    # --- looking -------------------------------------------------------------------------------

    def _saved(self) -> bool:
        return bool(self._ledger)

    def _watch(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._look()

    def _await(self, otherwise: str, condition: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE
        while not condition():
            self._look()
            ended = self._command.process.poll() is not None
            if time.monotonic() > until or (ended and not condition()):
                raise BenchmarkError(f"{otherwise}:\n{self._command.said.decode()[-3000:]}")

    def _look(self) -> None:
        time.sleep(0.1)
        now = time.monotonic() - self._began
        for kill in self.kills:
            kill.note(now - kill.at, self._command.counters)
        with suppress(OSError):
            saved = json.loads((self.directory / "run" / "ckpt" / MANIFEST).read_text())
            ledger = dict(_numbers(saved["ledger"]))
            back = [name for name, old in self._ledger.items() if ledger[name] < old]
            self.ran_back += [f"{n}: {self._ledger[n]} -> {ledger[n]}" for n in back]
            self._ledger = ledger

    def _note_orphans(self, patience: float = 30.0) -> None:
        until = time.monotonic() + patience
        while (left := list(marked(self._mark))) and time.monotonic() < until:
            time.sleep(0.2)
        for process in left:
            self.orphans.append(_title(process))
            with suppress(psutil.Error):
                process.kill()

    def _found(self) -> dict[str, Any]:
        result = json.loads((self.directory / "run" / "result.json").read_text())
        early = [entry for entry in result["curve"] if entry["reward_mean"] > SHUT_STEPS]
        chunks = result["ledger"]["chunks"]
        open_chunks = chunks["asked"] - chunks["stored"] - chunks["lost"] - chunks["stale"]
        collectors = MAIN["policy"]["collect"]["collector"]["collector_num"]  # type: ignore[index]
        return {
            "kills": [vars(kill) for kill in self.kills],
            "seconds": time.monotonic() - self._began,
            "exit_code": self._command.process.returncode,
            "stop": result["stop"],
            "evaluations_after": len(early),
            "env_step": result["env_step"],
            "ledger": result["ledger"],
            # Under way or queued at the end: two of each collector, and one that is asked for.
            "balanced": 0 <= open_chunks <= 3 * collectors,
            "ran_back": self.ran_back,
            "orphans": self.orphans,
        }


def _numbers(ledger: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, value in ledger.items():
        if name == "restarts":
            yield name, sum(value.values())
        elif name == "lag":
            continue  # What it is now, not a count.
        elif isinstance(value, dict):
            yield from value.items()
        else:
            yield name, value


def marked(mark: str) -> Iterator[psutil.Process]:
    """Processes of a run, whoever their parents are."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == mark:
                yield process


def run(quick: bool) -> str:
    about = {**stamp(), "quick": quick}
    with tempfile.TemporaryDirectory() as directory:
        found = Chaos(Path(directory)).run(QUICK_KILLS if quick else KILLS)
    if not quick:
        (HERE / "chaos.json").write_text(json.dumps(about | found, indent=1) + "\n")
    return table(found)


def table(found: dict[str, Any]) -> str:
    lines = [f"{'killed':<10}{'times':>6}{'until stored':>14}{'until updated':>15}  mean seconds"]
    for role in (*ROLES, "command"):
        own = [kill for kill in found["kills"] if kill["role"] == role]
        if own:
            calm = [kill for kill in own if kill["calm"]]
            means = (_mean([kill[key] for kill in calm]) for key in ("stored", "updated"))
            lines.append("{:<10}{:>6}{:>14}{:>15}".format(role, len(own), *means))
    checks = {
        "goal reached": found["stop"] and found["exit_code"] == 0,
        "every chunk accounted for": found["balanced"],
        "no counter ran back": not found["ran_back"],
        "no process left": not found["orphans"],
    }
    lines += [f"{name}: {'met' if good else 'MISSED'}" for name, good in checks.items()]
    lines += [*found["ran_back"][:5], *found["orphans"][:5]]
    return "\n".join(lines)


def _mean(seconds: list[float | None]) -> str:
    known = [s for s in seconds if s is not None]
    return f"{mean(known):.1f}" if known else "-"
