"""`ding -m dist` as its users run it: plans, processes that join one cluster, machines that die."""

from __future__ import annotations

import json
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

from ding.entry import cli
from ding.entry.dist import Plan
from dizoo.board_games.config import tictactoe_league_ppo_config
from entry.configs import config_file

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")

LONG = {
    "env.stop_value": 1e6,
    "checkpoint_seconds": 1,
    "policy.learn.update_per_collect": 1,
    "policy.collect.n_sample": 32,
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(directory: Path, *options: str, changes: dict[str, Any] | None = None) -> str:
    file = config_file(directory, changes=changes)
    words = ["-m", "dist", "--module", "config", "-c", str(file), "-s", "3", *options]
    assert cli.main(words) == 0
    return "cfg.py.pkl"


# --- plans ---------------------------------------------------------------------------------------


def test_a_plan_says_all_that_others_need(directory: Path, capsys: Any) -> None:
    written = plan(directory, "-p", "local")
    told = capsys.readouterr().out
    assert f"ding -m dist --module coordinator -c {written}" in told
    read = Plan.read(written)
    assert read.seed == 3
    assert read.address.startswith("127.0.0.1:")
    assert read.main["env"]["env_id"] == "CartPole-v1"
    assert read.token.stat().st_mode & 0o777 == 0o600
    assert read.token.read_text() not in told


@pytest.mark.parametrize(
    ("options", "file", "words"),
    [
        (["-p", "slurm"], "cfg.py.sbatch", ["ray symmetric-run", "--module coordinator"]),
        (["-P", "k8s", "--image", "me/ding"], "cfg.py.rayjob.yaml", ["kind: RayJob", "me/ding"]),
    ],
)
def test_launch_files(
    directory: Path, options: list[str], file: str, words: list[str], capsys: Any
) -> None:
    plan(directory, *options)
    text = Path(file).read_text()
    assert all(word in text for word in words)
    assert file in capsys.readouterr().out


def test_leagues_have_collectors_alone(directory: Path, capsys: Any) -> None:
    file = directory / "league_config.py"
    file.write_text(Path(tictactoe_league_ppo_config.__file__).read_text())
    assert cli.main(["-m", "dist", "--module", "config", "-p", "local", "-c", str(file)]) == 0
    said = capsys.readouterr().out
    assert "--module-name collector1" in said and "--module learner" not in said
    assert cli.main(["-m", "dist", "--module", "config", "-p", "slurm", "-c", str(file)]) == 1
    assert "those of a league learn in the coordinator" in capsys.readouterr().err


def test_a_token_that_others_can_read_is_refused(directory: Path) -> None:
    written = plan(directory)
    token = Path(f"{written}.token")
    token.chmod(0o644)
    with pytest.raises(Exception, match="can be read by others: chmod 600"):
        _ = Plan.read(written).token
    token.unlink()
    with pytest.raises(Exception, match="is missing"):
        _ = Plan.read(written).token


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "-m dist does one thing"),
        (["--module", "collector", "--add", "collector"], "-m dist does one thing"),
        (["--module", "colector"], "did you mean 'collector'"),
        (["--add", "buffer"], "--add buffer"),
        (["--module", "config", "-p", "slrm"], "did you mean 'slurm'"),
        (["--module", "collector", "-rs", "0"], "--replicas 0: must be 1 at least"),
        (["--module", "collector"], "this module takes the file that"),
        (["--delete", "collector", "-p", "k8s"], "kubectl edit raycluster"),
    ],
)
def test_bad_options(directory: Path, words: list[str], message: str, capsys: Any) -> None:
    file = config_file(directory)
    assert cli.main(["-m", "dist", "-c", str(file), *words]) == 1
    assert message in capsys.readouterr().err


def test_options_of_this_mode_are_refused_elsewhere(capsys: Any) -> None:
    assert cli.main(["-m", "serial", "--module", "learner"]) == 1
    assert "--module takes effect with -m dist only" in capsys.readouterr().err


def test_orders_need_a_run(directory: Path, capsys: Any) -> None:
    written = plan(directory)
    assert cli.main(["-m", "dist", "--restart", "learner", "-c", written]) == 1
    assert "is the run of cfg.py.pkl going on?" in capsys.readouterr().err


def test_the_dashboard_is_asked_of_the_head(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = config_file(directory)
    file.write_text(file.read_text() + "system_config = {'coordinator': {'dashboard': True}}\n")
    assert cli.main(["-m", "dist", "--module", "config", "-c", str(file)]) == 0
    monkeypatch.setattr("ding.entry.dist.close_to_others", lambda *_, **__: None)
    monkeypatch.setattr("ding.parallel.cluster.find_spec", lambda name: None)
    assert cli.main(["-m", "dist", "--module", "coordinator", "-c", "cfg.py.pkl"]) == 1
    assert "pip install 'ray[default]'" in capsys.readouterr().err


# --- processes -----------------------------------------------------------------------------------


class Modules:
    """Commands that run, and what they have started."""

    def __init__(self) -> None:
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: set[psutil.Process] = set()

    def start(self, name: str, *words: str) -> None:
        command = [sys.executable, "-m", "ding.entry.cli", "-m", "dist", *words]
        with Path(f"{name}.txt").open("a") as out:
            self.running[name] = subprocess.Popen(command, stdout=out, stderr=out)

    def below(self, name: str) -> list[psutil.Process]:
        found = psutil.Process(self.running[name].pid).children(recursive=True)
        self._seen |= set(found)
        return found

    def node(self, name: str) -> psutil.Process:
        """Ray's own process of this part of the cluster."""
        return next(p for p in self.below(name) if "raylet/raylet" in p.cmdline()[0])

    def wait(self, name: str, timeout: float) -> int:
        return self.running[name].wait(timeout)

    def left(self, timeout: float) -> list[list[str]]:
        _, alive = psutil.wait_procs(list(self._seen), timeout)
        return [p.cmdline() for p in alive if p.is_running() and p.status() != "zombie"]

    def told(self) -> str:
        return "\n".join(f"== {n}\n{Path(f'{n}.txt').read_text()}" for n in self.running)

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
        for process in self._seen:
            if process.is_running():
                process.kill()


@pytest.fixture
def modules() -> Iterator[Modules]:
    running = Modules()
    yield running
    running.close()


def ledger() -> dict[str, Any]:
    try:
        return json.loads(Path("run/ckpt/parallel_state.json").read_text())["ledger"]
    except FileNotFoundError:
        return {"env_steps": 0, "restarts": {}}


def await_ledger(modules: Modules, steps: int, learners: int = 0, timeout: float = 120) -> int:
    """Until so many env steps and restarts of the learner are saved; the steps that are."""
    until = time.monotonic() + timeout
    while (found := ledger())["env_steps"] < steps or found["restarts"].get(
        "learner", 0
    ) < learners:
        assert time.monotonic() < until, modules.told()
        assert modules.running["coordinator"].poll() is None, modules.told()
        time.sleep(0.2)
    return int(found["env_steps"])


def await_words(modules: Modules, name: str, words: str, timeout: float = 60) -> None:
    until = time.monotonic() + timeout
    while words not in Path(f"{name}.txt").read_text():
        assert time.monotonic() < until, modules.told()
        time.sleep(0.2)


@pytest.mark.slow
def test_machines_join_and_die(directory: Path, modules: Modules) -> None:
    written = plan(directory, changes=LONG)
    on = ("-c", written)
    modules.start("learner0", "--module", "learner", "--module-name", "learner0", *on)
    modules.start("collector0", "--module", "collector", "--module-name", "collector0", *on)
    modules.start("coordinator", "--module", "coordinator", *on)
    steps = await_ledger(modules, 500)
    modules.start("collector1", "--add", "collector", *on)
    await_words(modules, "coordinator", "room for 1 of 2")
    await_words(modules, "collector1", "joined")
    addresses = {
        c.laddr.ip
        for name in modules.running
        for p in [psutil.Process(modules.running[name].pid), *modules.below(name)]
        for c in p.net_connections("inet")
        if c.status == "LISTEN"
    }
    assert addresses <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    steps = await_ledger(modules, steps + 500)
    modules.node("collector0").kill()  # A whole machine, without a word.
    steps = await_ledger(modules, steps + 1000)
    modules.node("learner0").kill()
    steps = await_ledger(modules, steps + 1000, learners=1)
    assert ding("--restart", "learner", *on) == 0
    await_ledger(modules, steps + 1000, learners=2)

    modules.below("coordinator")
    modules.running["coordinator"].kill()
    modules.wait("coordinator", 10)
    steps = ledger()["env_steps"]
    modules.start("coordinator", "--module", "coordinator", "--resume", *on)
    assert await_ledger(modules, steps + 1000) > steps  # The others have joined the new one.
    machines = ("collector0", "collector1", "learner0")
    for name in machines:
        modules.below(name)
        modules.running[name].terminate()
    for name in machines:
        assert modules.wait(name, 40) == 0, modules.told()
    modules.running["coordinator"].send_signal(signal.SIGINT)
    assert modules.wait("coordinator", 30) == 130, modules.told()  # There is nobody to be saved.
    assert "the last checkpoint stays" in modules.told()
    assert json.loads(Path("run/result.json").read_text())["env_step"] == ledger()["env_steps"]
    assert modules.left(20) == []


def ding(*words: str) -> int:
    command = [sys.executable, "-m", "ding.entry.cli", "-m", "dist", *words]
    return subprocess.run(command, timeout=60, check=False).returncode
