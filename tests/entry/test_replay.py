"""`ding -m replay`: the episode that broke breaks again, whatever it does to its process."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.entry import replay as command
from ding.entry.cli import main
from ding.envs import BaseEnvManager
from ding.envs.manager.flight.recorder import FlightRecorder
from ding.utils.errors import EnvError
from dizoo.classic_control.cartpole.envs.cartpole_env import CartPoleEnv

ROOT = Path(__file__).parents[2]

ENV = '''
import ctypes, os, signal, time
import gymnasium as gym
import numpy as np
from ding.envs import BaseEnv, BaseEnvTimestep

class WalkEnv(BaseEnv):
    """Walks by the action and by chance, and fails beyond `cfg['edge']` in the way `cfg` says."""

    _observation_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)
    _action_space = gym.spaces.Discrete(2)
    _reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)

    def reset(self, start=0.0):
        self.chance = np.random.default_rng(self._next_seed())
        if self._cfg.get("quiet"):
            self.episode_seed = None
        self.place = start
        return self.obs()

    def obs(self):
        return np.array([self.place], dtype=np.float32)

    def step(self, action):
        self.place += self.chance.random() * (1 if action else 0.5)
        if self.place > self._cfg["edge"]:
            getattr(self, self._cfg["how"])()
        return BaseEnvTimestep(self.obs(), self.place, False, {})

    def fall(self):
        raise OverflowError(f"fell at {self.place}")

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self):
        os._exit(7)

    def sleep(self):
        time.sleep(60)

    def freeze(self):
        ctypes.PyDLL(None).sleep(60)

    def vanish(self):
        self.place = float("nan")

    def close(self):
        pass
'''


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "walk_env", raising=False)
    (tmp_path / "walk_env.py").write_text(ENV)


def walk(how: str, **cfg: Any) -> Any:
    from walk_env import WalkEnv  # type: ignore[import-not-found]

    return partial(WalkEnv, cfg={"how": how, "edge": 6.0, **cfg})


def flown(how: str, manager_cfg: dict[str, Any] | None = None, **cfg: Any) -> Path:
    """The file that a manager leaves behind when its second env fails in its third episode."""
    makers = [walk(how, edge=1e9), walk(how, **cfg)]
    manager = BaseEnvManager(makers, manager_cfg)
    manager.seed(11)
    manager.launch({1: {"start": 0.5}})
    for _ in range(4):
        manager.step({0: 0, 1: 1})
    manager.reset({1: None})
    manager.reset({1: None})
    rng = np.random.default_rng(0)
    with pytest.raises(EnvError):
        for _ in range(99):
            manager.step({i: int(rng.integers(2)) for i in manager.ready_obs})
    (path,) = Path("flight").iterdir()
    return path


def kept(how: str, kind: str, error: str, steps: int, **limits: float) -> Path:
    """A file as the manager of another process would write it."""
    recorder = FlightRecorder(1, [walk(how)], limits)
    recorder.seeded(0, 1, False)
    recorder.began(0)
    recorder.told(0, 1)
    for _ in range(steps):
        recorder.record(np.array([0]), np.array([1]))
    return recorder.flight(0, error, "", kind).save("flight")


def steps_to_the_edge() -> int:
    env = walk("fall")()
    env.seed(1, dynamic_seed=False)
    env.reset()
    taken = 1
    with pytest.raises(OverflowError):
        while taken < 99:
            env.step(1)
            taken += 1
    return taken


def test_in_a_fresh_process() -> None:
    path = flown("fall")
    argv = [sys.executable, "-m", "ding.entry.cli", "-m", "replay", str(path), "--trust"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    step = path.read_text().partition('"step": ')[2].partition(",")[0]
    assert f"raised the same error at step {step}:" in done.stdout
    assert 'raise OverflowError(f"fell at {self.place}")' in done.stdout
    assert f"\nstep {int(step) - 1}: action " in done.stdout


def test_foreign_code_is_not_run_unasked(capsys: Any) -> None:
    path = flown("fall")
    assert main(["-m", "replay", str(path)]) == 1
    text = capsys.readouterr().err
    assert "'walk_env:WalkEnv', which is not part of ding" in text
    assert "--trust" in text


def test_an_env_that_does_not_tell_its_seed_is_reset_as_often(capsys: Any) -> None:
    path = flown("fall", quiet=True)
    assert '"resets": 3' in path.read_text()
    assert main(["-m", "replay", "--load-path", str(path), "--trust"]) == 0
    assert "episode seed None" in capsys.readouterr().out


def test_nan_is_recognised(capsys: Any) -> None:
    assert main(["-m", "replay", str(flown("vanish")), "--trust"]) == 0
    assert "obs is NaN" in capsys.readouterr().out


@pytest.mark.parametrize(("how", "told"), [("die", "SIGKILL"), ("leave", "exit code 7")])
def test_a_death_does_not_end_the_command(how: str, told: str, capsys: Any) -> None:
    count = steps_to_the_edge()
    path = kept(how, "died", "its worker died", count)
    assert main(["-m", "replay", str(path), "--trust"]) == 0
    text = capsys.readouterr().out
    assert f"raised the same error at step {count}:" in text
    assert told in text
    path = kept(how, "died", "its worker died", count - 1)
    assert main(["-m", "replay", str(path), "--trust"]) == 3
    assert f"did not fail: the reset and {count - 1} steps went well" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["sleep", "freeze"])
def test_a_hang_is_cut(how: str, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setattr(command, "_GRACE", 0.3)
    count = steps_to_the_edge()
    path = kept(how, "timeout", "TimeoutError('long')", count, step_timeout=0.05, reset_timeout=1)
    assert main(["-m", "replay", str(path), "--trust"]) == 0
    text = capsys.readouterr().out
    assert f"raised the same error at step {count}:" in text
    if how == "sleep":
        assert "time.sleep(60)" in text


def test_timeout_option(capsys: Any) -> None:
    path = kept("sleep", "timeout", "TimeoutError('long')", steps_to_the_edge())
    assert main(["-m", "replay", str(path), "--trust", "--timeout", "0.1"]) == 0
    assert "took longer than 0.1 seconds" in capsys.readouterr().out


def test_another_failure_is_not_the_recorded_one(capsys: Any) -> None:
    count = steps_to_the_edge()
    path = kept("fall", "raised", "KeyError('x')", count)
    assert main(["-m", "replay", str(path), "--trust"]) == 3
    assert "did not fail in the same way" in capsys.readouterr().out
    path = kept("fall", "raised", "OverflowError('x')", count + 5)
    assert main(["-m", "replay", str(path), "--trust"]) == 3


def test_an_env_of_ours_needs_no_trust(capsys: Any) -> None:
    recorder = FlightRecorder(1, [partial(CartPoleEnv, cfg={"env_id": "CartPole-v0"})])
    recorder.seeded(0, 5)
    recorder.began(0)
    recorder.told(0, 8)
    for _ in range(30):
        recorder.record(np.array([0]), np.array([1]))
    path = recorder.flight(0, "ValueError('x')").save("flight")
    assert main(["-m", "replay", str(path)]) == 3
    text = capsys.readouterr().out
    assert "did not fail: the episode ended at step" in text
    assert "done True" in text


def test_what_the_file_does_not_say(capsys: Any) -> None:
    recorder = FlightRecorder(1, [lambda: walk("fall")()])
    recorder.began(0)
    path = recorder.flight(0, "ValueError('x')", "", "reset").save("flight")
    assert main(["-m", "replay", str(path)]) == 1
    assert "ding.envs.replay_flight(path, env_fn)" in capsys.readouterr().err
    recorder.began(0, {"start": object()})
    path = recorder.flight(0, "ValueError('x')", "", "reset").save("flight")
    assert main(["-m", "replay", str(path)]) == 1
    assert "an argument of the reset: object is no plain data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["-m", "replay"], "which flight?"),
        (["-m", "replay", "x.json"], "no flight file at 'x.json'"),
        (["-m", "replay", "x.json", "--load-path", "y.json"], "give one file"),
        (["-m", "replay", "x.json", "-s", "3"], "--seed has no effect with -m replay"),
        (["-m", "serial", "x.json"], "'x.json': a file without an option"),
        (["-m", "serial", "-e", "cartpole", "-p", "dqn", "--trust"], "--trust has no effect"),
    ],
)
def test_options(argv: list[str], told: str, capsys: Any) -> None:
    assert main(argv) == 1
    assert told in capsys.readouterr().err


def test_bad_timeout() -> None:
    with pytest.raises(SystemExit):
        main(["-m", "replay", "x.json", "--timeout", "-1"])
