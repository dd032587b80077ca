"""The commands for people: `ding train`, `eval`, `list`, `help`, called in process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ding.entry.cli import main
from ding.entry.overrides import parsed
from entry.configs import config_file

TINY = [
    "learn.batch_size=16",
    "env.collector_env_num=2",
    "env.evaluator_env_num=1",
    "env.n_evaluator_episode=1",
    "model.encoder_hidden_size_list=[8]",
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def result_of(directory: str) -> dict[str, Any]:
    return json.loads((Path(directory) / "result.json").read_text())


def config_of(directory: str) -> dict[str, Any]:
    from ding.config import read_config

    return read_config(Path(directory) / "total_config.py")[0]


def test_overview_shows_commands_first_in_80_columns(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([]) == 0
    alone = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert text.startswith(alone)
    assert text.index("  train ") < text.index("-m MODE") < text.index("--coordinator-host")
    assert max(map(len, text.splitlines())) <= 80


def test_train_takes_overrides_and_names_the_run_after_the_seed(capsys: Any) -> None:
    argv = ["train", "CartPole-v1", "dqn", *TINY, "--steps", "1e2", "-s", "3"]
    assert main([*argv, "collect.n_sample=10"]) == 0
    assert "training for 100 env steps" in capsys.readouterr().err
    run = "CartPole-v1_dqn_seed3"
    assert result_of(run)["env_step"] == 100
    assert result_of(run)["seed"] == 3
    cfg = config_of(run)
    assert cfg.policy.learn.batch_size == 16
    assert cfg.env.collector_env_num == 2
    assert cfg.policy.collect.n_sample == 10


def test_seeds_side_by_side(tmp_path: Path, capsys: Any) -> None:
    config_file(tmp_path)
    argv = ["train", "cfg.py", "--steps", "24", "--seeds", "2", "--jobs", "2"]
    assert main(argv) == 0
    assert "2 seeds, 0 reached the goal" in capsys.readouterr().out
    assert [result_of(f"run/seed{k}")["seed"] for k in (0, 1)] == [0, 1]
    assert json.loads(Path("run/summary.json").read_text())["seeds"] == [0, 1]


def test_eval_reports_what_the_agent_reaches(tmp_path: Path, capsys: Any) -> None:
    import ding

    config_file(tmp_path)
    assert main(["train", "cfg.py", "--steps", "16", "--exp-name", "run"]) == 0
    capsys.readouterr()
    assert main(["eval", "run", "--episodes", "3", "--seed", "5"]) == 0
    returns = ding.load("run").evaluate(episodes=3, seed=5)
    assert f"3 episodes: return mean {returns.mean():.2f}" in capsys.readouterr().out
    assert main(["list", "runs"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["run", "dqn", "16"]


def test_overrides_are_python_literals() -> None:
    words = ["a.b=1", "c=0.5", "d=[8, 8]", "e=true", "f=none", "g=abc", "h='1'", "i=-inf", "j=x=y"]
    assert parsed(words) == {
        "a.b": 1,
        "c": 0.5,
        "d": [8, 8],
        "e": True,
        "f": None,
        "g": "abc",
        "h": "1",
        "i": -float("inf"),
        "j": "x=y",
    }


def test_lists(capsys: Any) -> None:
    assert main(["list", "policies", "rainbow"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["rainbow", "off", "discrete"]
    assert main(["list", "configs", "cartpole_no_velocity"]) == 0
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["cartpole_no_velocity", "ppo_recurrent"], ["cartpole_no_velocity", "r2d2"]]
    assert main(["list", "envs", "CartPole-v1"]) == 0
    assert "at most 500 steps, solved at 475" in capsys.readouterr().out


def test_help_of_a_policy_has_every_setting(capsys: Any) -> None:
    assert main(["help", "ppo"]) == 0
    text = capsys.readouterr().out
    for key in ("learn.clip_ratio = 0.2", "env.stop_value = (required)", "exp_name ="):
        assert f"  {key}" in text
    assert main(["help", "ppo", "learn.batch_size"]) == 0
    assert "learn.batch_size = 64" in capsys.readouterr().out
    assert main(["help", "train"]) == 0
    assert "--seeds N" in capsys.readouterr().out


def test_a_run_is_resumed_drawn_exported_and_played(tmp_path: Path, capsys: Any) -> None:
    import ding

    config_file(tmp_path)
    assert main(["train", "cfg.py", "--steps", "16", "--exp-name", "run"]) == 0
    assert main(["resume", "run", "--steps", "40"]) == 0
    assert result_of("run")["env_step"] == 40
    assert main(["plot", "run", "-o", "curve.png"]) == 0
    assert Path("curve.png").read_bytes().startswith(b"\x89PNG")
    assert main(["export", "run", "policy.ding"]) == 0
    whole, best = ding.load("policy.ding"), ding.load("run")
    assert whole.evaluate(episodes=2).tolist() == best.evaluate(episodes=2).tolist()
    assert "after 40 env steps" in capsys.readouterr().out


def test_videos_are_as_many_as_asked_for(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("imageio_ffmpeg")
    pytest.importorskip("pygame")
    config_file(tmp_path)
    assert main(["train", "cfg.py", "--steps", "16", "--exp-name", "run"]) == 0
    assert main(["eval", "run", "--episodes", "3", "--video", "2"]) == 0
    assert len(list(Path("run/videos").glob("*.mp4"))) == 2
    assert "3 episodes" in capsys.readouterr().out
    for screen in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(screen, raising=False)
    assert main(["play", "run"]) == 0
    assert "1 video in run/videos" in capsys.readouterr().out
    assert len(list(Path("run/videos").glob("*.mp4"))) == 3


def test_config_shows_what_was_set_explains_and_compares(tmp_path: Path, capsys: Any) -> None:
    config_file(tmp_path)
    config_file(tmp_path, changes={"policy.learn.batch_size": 32}, name="other.py")
    assert main(["config", "cfg.py"]) == 0
    shown = capsys.readouterr().out
    assert "policy.learn.batch_size = 16" in shown
    assert "policy.discount_factor" not in shown
    assert main(["config", "cfg.py", "--explain", "learn.batch_size"]) == 0
    assert capsys.readouterr().out.startswith("16 (user)")
    assert main(["config", "cfg.py", "--diff", "other.py"]) == 0
    assert capsys.readouterr().out == "policy.learn.batch_size: 16 -> 32\n"


ENVS = """
import gymnasium as gym
import numpy as np

class Good(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        return self.np_random.uniform(-1, 1, 2).astype(np.float32)

    def step(self, action):
        self.steps += 1
        return self.observe(), 0.5, self.steps == 10, False, {}

class Outside(Good):
    def observe(self):
        return np.full(2, 1e20, np.float32)

class Unseeded(Good):
    def observe(self):
        return np.random.default_rng().uniform(-1, 1, 2).astype(np.float32)

class FormerReset(Good):
    def reset(self, **options):
        return super().reset(**options)[0]

class FormerStep(Good):
    def step(self, action):
        obs, reward, end, _, info = super().step(action)
        return obs, reward, end, info

class NaN(Good):
    def observe(self):
        return np.full(2, np.nan, np.float32)
"""


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("Good", 0, ["returns       5 to 5, mean 5", "10 to 10 steps", "nothing wrong"]),
        ("Outside", 1, ["holds 1e+20, outside its space"]),
        ("Unseeded", 1, ["no run can be repeated"]),
        ("FormerReset", 1, ["must return (obs, info)", "former Gym"]),
        ("FormerStep", 1, ["it returned 4 values"]),
        ("NaN", 1, ["obs is NaN"]),
        ("Goood", 1, ["did you mean 'Good'?"]),
    ],
)
def test_check_says_what_is_wrong_with_an_env(
    name: str, code: int, words: list[str], tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "checked_envs.py").write_text(ENVS)
    assert main(["check", f"checked_envs:{name}"]) == code
    text = "".join(capsys.readouterr())
    for word in words:
        assert word in text


def test_an_own_env_is_trained_in(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "trained_envs.py").write_text(ENVS)
    argv = ["train", "trained_envs:Good", "dqn", *TINY, "collect.n_sample=10"]
    assert main([*argv, "--steps", "20"]) == 0
    assert result_of("trained_envs_Good_dqn_seed0")["eval_value"] == 5
    assert main(["eval", "trained_envs_Good_dqn_seed0", "--episodes", "2"]) == 0
    assert "2 episodes: return mean 5.00" in capsys.readouterr().out


def test_doctor_says_what_is_there(capsys: Any) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "ok  torch " in text
    assert text.endswith("all that is needed is there\n")
