"""Same seed, same bits; and what was cut off goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from ding.entry import Run, serial_pipeline, train
from ding.entry.cli import main
from ding.pipeline.state import PREVIOUS_NAME, STATE_NAME, StateKeeper, find_run, load_state
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.limits import Limits
from ding.worker.buffer import NaiveReplayBuffer, datafile
from entry.configs import config_file, pair

LIMITS = {
    "dqn": dict(max_env_step=640),
    "ppo": dict(max_env_step=640),
    "sac": dict(max_env_step=420),
}
KINDS = ["dqn", "ppo", "sac"]
VOLATILE = ("seconds", "finish_time", "exp_name")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def result_of(directory: Path) -> dict[str, Any]:
    result = json.loads((directory / "result.json").read_text())
    return {key: value for key, value in result.items() if key not in VOLATILE}


def weights_of(directory: Path) -> dict[str, Any]:
    state = torch.load(directory / "ckpt" / STATE_NAME, weights_only=True)
    return state["learner"]["policy"]


def assert_same_tree(a: Any, b: Any, path: str = "") -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            assert_same_tree(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same_tree(x, y, f"{path}[{i}]")
    elif isinstance(a, torch.Tensor):
        assert torch.equal(a, b), path
    else:
        assert a == b or (a != a and b != b), path


def assert_same_run(a: Path, b: Path) -> None:
    assert result_of(a) == result_of(b)
    assert_same_tree(weights_of(a), weights_of(b))


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_bits(kind: str, tmp_path: Path) -> None:
    for name in ("first", "second", "other"):
        seed = 1 if name == "other" else 0
        serial_pipeline(pair(kind, exp_name=name), seed=seed, **LIMITS[kind])
    assert_same_run(tmp_path / "first", tmp_path / "second")
    assert result_of(tmp_path / "first")["curve"] != result_of(tmp_path / "other")["curve"]


class KilledError(Exception):
    """Stands for SIGKILL inside of this process."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [1, 3, 7])
def test_resumed_run_is_the_uninterrupted_one(
    kind: str, at: int, tmp_path: Path, monkeypatch: Any
) -> None:
    serial_pipeline(pair(kind, exp_name="whole"), seed=0, **LIMITS[kind])
    saved = 0
    save = Run.save

    def save_and_die(run: Run, wait: bool = False) -> None:
        nonlocal saved
        # Waiting: how many saves a run has time for must not depend on the disk.
        save(run, wait=True)
        saved += 1
        if saved == at:
            raise KilledError

    monkeypatch.setattr(Run, "save", save_and_die)
    config = pair(kind, exp_name="cut", checkpoint_seconds=0.0)
    with pytest.raises(KilledError):
        serial_pipeline(config, seed=0, **LIMITS[kind])
    monkeypatch.setattr(Run, "save", save)
    serial_pipeline(config, seed=0, resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.parametrize("stops", [True, False])
def test_killed_between_the_last_save_and_the_result(
    stops: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    env = dict(stop_value=1) if stops else {}
    serial_pipeline(pair("dqn", exp_name="whole", env=env), seed=0, max_env_step=400)

    def die(run: Run) -> Any:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Run, "_report", die)
        serial_pipeline(pair("dqn", exp_name="cut", env=env), seed=0, max_env_step=400)
    serial_pipeline(pair("dqn", exp_name="cut", env=env), seed=0, resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert result_of(tmp_path / "whole")["stop"] is stops


def test_result_is_never_half_written(tmp_path: Path, monkeypatch: Any) -> None:
    serial_pipeline(pair("dqn"), seed=0, max_env_step=100)
    before = (tmp_path / "run" / "result.json").read_text()

    def die(self: Path, target: Any) -> Any:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(Path, "replace", die)
        from ding.pipeline.report import write_result

        write_result(tmp_path / "run", {**json.loads(before), "stop": True})
    assert (tmp_path / "run" / "result.json").read_text() == before


def test_finished_run_can_be_extended(tmp_path: Path) -> None:
    serial_pipeline(pair("dqn"), seed=0, max_env_step=200)
    serial_pipeline(pair("dqn"), seed=0, max_env_step=400, resume=True)
    assert result_of(tmp_path / "run")["env_step"] >= 400


def test_finished_run_resumed_changes_nothing(tmp_path: Path) -> None:
    serial_pipeline(pair("dqn"), seed=0, max_env_step=200)
    before = result_of(tmp_path / "run")
    serial_pipeline(pair("dqn"), seed=0, resume=True)
    assert result_of(tmp_path / "run") == before


def test_changed_settings_are_refused(tmp_path: Path) -> None:
    serial_pipeline(pair("dqn"), seed=0, max_env_step=200)
    with pytest.raises(ConfigError, match=r"policy\.nstep was 1, is 3"):
        serial_pipeline(pair("dqn", policy=dict(nstep=3)), seed=0, resume=True)
    with pytest.raises(ConfigError, match="seed was 0, is 5"):
        serial_pipeline(pair("dqn"), seed=5, resume=True)


def test_other_checkpoint_interval_is_not_another_setting() -> None:
    serial_pipeline(pair("dqn"), seed=0, max_env_step=100)
    serial_pipeline(pair("dqn", checkpoint_seconds=7.0), seed=0, max_env_step=120, resume=True)


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "bit"])
def test_damaged_state_falls_back_to_the_one_before(
    damage: str, tmp_path: Path, caplog: Any
) -> None:
    serial_pipeline(pair("dqn", exp_name="whole"), seed=0, **LIMITS["dqn"])
    config = pair("dqn", exp_name="cut", checkpoint_seconds=0.0)
    with Run(config, 0, limits=Limits(env_step=640)) as run:
        train(run)
    state = tmp_path / "cut" / "ckpt" / STATE_NAME
    content = state.read_bytes()
    changed = bytearray(content)
    changed[content.index(b"\0" * 64) + 20] ^= 4  # padding: to torch it makes no difference
    contents = {"cut": content[:-1000], "text": b"x" * 500, "empty": b"", "bit": bytes(changed)}
    state.write_bytes(contents[damage])
    serial_pipeline(config, seed=0, resume=True)
    assert "going on from the state before it" in caplog.text
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    for name in (STATE_NAME, PREVIOUS_NAME):
        (tmp_path / "cut" / "ckpt" / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match="can't be resumed"):
        serial_pipeline(config, seed=0, resume=True)


def test_state_of_another_version_is_refused(tmp_path: Path) -> None:
    keeper = StateKeeper(tmp_path, None)
    keeper.save({"x": 1})
    assert load_state(tmp_path)["x"] == 1
    keeper.save({"x": 2, "version": 99})
    keeper.save({"x": 3, "version": 99})
    with pytest.raises(CheckpointError, match="another version"):
        load_state(tmp_path)


def filled_buffer(n: int) -> NaiveReplayBuffer:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=64))
    buffer.push([{"obs": float(i)} for i in range(n)])
    return buffer


def pushed(directory: Path) -> int:
    return load_state(directory)["buffer"]["pushed"]


def test_training_goes_on_while_the_buffer_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    buffer = filled_buffer(3)
    keeper = StateKeeper(tmp_path, buffer)
    keeper.save({"x": 1})
    keeper.finish()
    may_write = threading.Event()
    write = datafile.write

    def slow_write(*args: Any) -> None:
        may_write.wait(30)
        write(*args)

    monkeypatch.setattr(datafile, "write", slow_write)
    keeper.save({"x": 2})
    buffer.push([{"obs": 7.0}] * 2)
    assert keeper.is_busy
    assert load_state(tmp_path)["x"] == 1 and pushed(tmp_path) == 3
    may_write.set()
    while keeper.is_busy:
        time.sleep(0.01)
    assert load_state(tmp_path)["x"] == 2
    assert pushed(tmp_path) == 3, "the buffer as it was when the state was saved"
    keeper.save({"x": 3})
    keeper.finish()
    assert pushed(tmp_path) == 5


def test_buffer_files_of_the_last_two_states_are_kept(tmp_path: Path) -> None:
    buffer = filled_buffer(1)
    keeper = StateKeeper(tmp_path, buffer)
    for x in range(4):
        keeper.save({"x": x})
        keeper.finish()
        buffer.push({"obs": 0.0})
    files = sorted((tmp_path / "ckpt").glob("run_buffer_*"))
    assert len(files) == 2
    # A kill between the file and its state leaves a file that nobody wants.
    buffer.save_data(tmp_path / "ckpt" / "run_buffer_9.bin")
    keeper = StateKeeper(tmp_path, buffer, load_state(tmp_path))
    keeper.save({"x": 4})
    keeper.finish()
    assert len(list((tmp_path / "ckpt").glob("run_buffer_*"))) == 2
    newest = tmp_path / "ckpt" / load_state(tmp_path)["buffer_file"]
    newest.write_bytes(newest.read_bytes()[:-5])
    state = load_state(tmp_path)
    assert state["x"] == 3 and state["buffer"]["pushed"] == 4
    assert load_state(tmp_path)["x"] == 3, "the good one is the last one now"


def test_find_run_takes_the_newest(tmp_path: Path) -> None:
    for name in ("a", "a_261115_101010", "a_other", "b"):
        StateKeeper(tmp_path / name, None).save({})
    old, new = tmp_path / "a", tmp_path / "a_261115_101010"
    os.utime(new / "ckpt" / STATE_NAME, (10**9, 10**9))
    assert find_run(str(old)) == old
    os.utime(old / "ckpt" / STATE_NAME, (10**8, 10**8))
    assert find_run(str(old)) == new


def test_directory_instead_of_name(tmp_path: Path) -> None:
    serial_pipeline(pair("dqn"), seed=0, max_env_step=100)
    (tmp_path / "run").rename(tmp_path / "moved")
    assert main(["--resume", "moved", "--env-step", "160"]) == 0
    assert result_of(tmp_path / "moved")["env_step"] >= 160


def start(config: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ding.entry.cli", "-m", "serial", "-c", str(config), *options]
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_kill_9_at_any_moment(kind: str, tmp_path: Path) -> None:
    """A real SIGKILL while a state is written in every iteration; chance says where it hits."""
    steps = LIMITS[kind]["max_env_step"]
    serial_pipeline(pair(kind, exp_name="whole"), seed=0, max_env_step=steps)
    config = config_file(tmp_path, kind, {"exp_name": "cut", "checkpoint_seconds": 0.0})
    limit = ["--env-step", str(steps)]
    process = start(config, *limit)
    wait_for(tmp_path / "cut" / "ckpt" / PREVIOUS_NAME, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert main(["-m", "serial", "-c", str(config), *limit, "--resume"]) == 0
    assert_same_run(tmp_path / "whole", tmp_path / "cut")
    assert not list((tmp_path / "cut" / "ckpt").glob(".*.tmp"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_saves_and_leaves(number: int, tmp_path: Path) -> None:
    config = config_file(tmp_path, "dqn", {"checkpoint_seconds": 1000.0})
    process = start(config, "--env-step", "1e7")
    wait_for(tmp_path / "run" / "ckpt" / "ckpt_best.pth.tar", process)
    time.sleep(0.2)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert "go on with --resume run" in error
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["interrupted"] is True
    done = result["env_step"]
    assert main(["--resume", "run", "--env-step", str(done + 80)]) == 0
    steps = done + 80
    serial_pipeline(pair("dqn", exp_name="whole"), seed=0, max_env_step=steps)
    assert_same_run(tmp_path / "whole", tmp_path / "run")
