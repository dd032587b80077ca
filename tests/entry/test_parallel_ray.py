"""`ding -m parallel` as its users run it: with processes that die at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from ding.parallel.checkpointing import MANIFEST
from entry.configs import config_file

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")

GOAL = {
    "env.collector_env_num": 8,
    "env.evaluator_env_num": 4,
    "env.n_evaluator_episode": 8,
    "env.stop_value": 195,
    "env.max_episode_steps": 200,
    "policy.nstep": 3,
    "policy.discount_factor": 0.97,
    "policy.model.encoder_hidden_size_list": [128, 128, 64],
    "policy.learn.batch_size": 64,
    "policy.learn.learning_rate": 0.001,
    "policy.learn.update_per_collect": 4,
    "policy.collect.n_sample": 16,
    "policy.eval.evaluator.eval_freq": 64,
    "policy.other.replay_buffer.replay_buffer_size": 20000,
    "policy.other.eps": dict(type="exp", start=0.95, end=0.1, decay=5000),
}
# Otherwise small tasks are done before the first process could die.
AT_ONCE = "system_config = dict(coordinator=dict(head_start=False))\n"
ROLES = ("collector0", "learner", "buffer", "evaluator")


class Training:
    """The command, running."""

    def __init__(self, *args: str) -> None:
        command = [sys.executable, "-m", "ding.entry.cli", "-m", "parallel", *args]
        with Path("out.txt").open("w") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        self._all: set[psutil.Process] = set()

    def processes(self) -> list[psutil.Process]:
        found = psutil.Process(self.process.pid).children(recursive=True)
        self._all |= set(found)
        return found

    def service(self, role: str, timeout: float = 90) -> psutil.Process:
        """The process of a service; waits until there is one."""
        until = time.monotonic() + timeout
        while time.monotonic() < until and self.process.poll() is None:
            for process in self.processes():
                if _title(process).startswith(f"ray::{role}"):
                    return process
            time.sleep(0.1)
        raise AssertionError(f"no {role}; {Path('out.txt').read_text()}")

    def wait(self, timeout: float) -> int:
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(Path("out.txt").read_text()) from None

    def left(self, timeout: float) -> list[str]:
        """Processes that are still there after a while."""
        _, alive = psutil.wait_procs(list(self._all), timeout)
        return [_title(process) for process in alive if _title(process)]

    def close(self) -> None:
        self.process.kill()
        for process in self._all:
            if process.is_running():
                process.kill()
        self.process.wait()


def _title(process: psutil.Process) -> str:
    try:
        gone = process.status() == psutil.STATUS_ZOMBIE
        return "" if gone else " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


@pytest.fixture
def training() -> Iterator[Any]:
    started: list[Training] = []

    def start(*args: str) -> Training:
        started.append(Training(*args))
        return started[-1]

    yield start
    for one in started:
        one.close()


def config(directory: Path, changes: dict[str, Any]) -> str:
    file = config_file(directory, changes=changes)
    with file.open("a", encoding="utf-8") as more:
        more.write(AT_ONCE)
    return str(file)


def steps_in(manifest: Path) -> int:
    try:
        return json.loads(manifest.read_text())["ledger"]["env_steps"]
    except FileNotFoundError:
        return 0


def await_steps(training: Training, manifest: Path, steps: int, timeout: float = 90) -> None:
    """Until more than so many steps are saved."""
    until = time.monotonic() + timeout
    while steps_in(manifest) <= steps:
        assert training.process.poll() is None, Path("out.txt").read_text()
        assert time.monotonic() < until, Path("out.txt").read_text()
        time.sleep(0.05)


@pytest.mark.slow
def test_interrupt_then_kill_then_deaths_of_every_role(training: Any, tmp_path: Path) -> None:
    """One training in three parts; the last one has to reach its limit, and learn, all the same.

    No return ends it: on a quick machine it would be over before the first process could die.
    """
    file = config(tmp_path, {**GOAL, "env.stop_value": 1e6, "checkpoint_seconds": 0.2})
    manifest = tmp_path / "run" / "ckpt" / MANIFEST
    first = training("-c", file, "-s", "0")
    await_steps(first, manifest, 0)
    first.processes()
    first.process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert first.wait(30) == 130
    assert time.monotonic() - began < 15
    assert first.left(15) == []

    second = training("-c", file, "-s", "0", "--resume")
    await_steps(second, manifest, steps_in(manifest))
    second.processes()
    os.kill(second.process.pid, signal.SIGKILL)
    second.process.wait()
    assert second.left(30) == []
    steps = steps_in(manifest)

    limit = steps + 12_000
    third = training("-c", file, "-s", "0", "--resume", "--env-step", str(limit))
    for role in ROLES:
        third.service(role)
    await_steps(third, manifest, steps)
    for role in ROLES:
        third.service(role).kill()
    assert third.wait(240) == 0, Path("out.txt").read_text()
    assert third.left(15) == []
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["env_step"] >= limit
    assert max(point["reward_mean"] for point in result["curve"]) >= 150, result["curve"]
    ledger = result["ledger"]
    assert sum(ledger["restarts"].values()) >= 2
    chunks = ledger["chunks"]
    assert chunks["asked"] - chunks["stored"] - chunks["lost"] - chunks["stale"] in range(5)
