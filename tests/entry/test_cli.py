"""The options of the `ding` command, one by one."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ding
from ding.entry import eval, serial_pipeline
from ding.entry.cli import main
from ding.pipeline.evaluation import Evaluated
from ding.pipeline.progress import Progress
from ding.pipeline.report import iqm, summary
from ding.utils.limits import Limits
from ding.utils.terminal import ERASE, lines_of_panel
from entry.configs import config_file, pair

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def result_of(directory: str) -> dict[str, Any]:
    return json.loads((Path(directory) / "result.json").read_text())


def test_version_help_and_registry(capsys: Any) -> None:
    for option in ("-v", "--version", "-h"):
        with pytest.raises(SystemExit) as leaving:
            main([option])
        assert leaving.value.code == 0
    text = capsys.readouterr().out
    assert f"ding {ding.__version__}" in text
    for option in ("--train-iter", "--env-step", "--exp-name", "--resume", "--profile", "-q"):
        assert option in text
    assert main(["-q", "policy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("dqn: ") and "dqn.py:" in line for line in lines)


def test_what_a_run_leaves_behind(tmp_path: Path) -> None:
    config_file(tmp_path)
    assert main(["-m", "serial", "-c", "cfg.py", "-s", "3", "--train-iter", "1.2e2"]) == 0
    run = tmp_path / "run"
    result = result_of("run")
    assert result["train_iter"] == 120
    assert result["seed"] == 3
    assert result["stop"] is False
    assert [point["train_iter"] for point in result["curve"]][:3] == [0, 20, 40]
    assert len(result["eval_value_raw"]) == 2
    short = pickle.loads((run / "result.pkl").read_bytes())
    assert short["eval_value"] == result["eval_value"] == np.mean(short["eval_value_raw"])
    for name in ("ckpt/ckpt_best.pth.tar", "ckpt/iteration_120.pth.tar", "curve.png"):
        assert (run / name).is_file()
    for worker in ("learner", "evaluator", "collector"):
        assert (run / "log" / worker / f"{worker}_logger.txt").is_file()
        assert list((run / "log" / worker).glob("events.out.tfevents*"))
    for name in ("total_config.py", "formatted_total_config.py"):
        code = main(["-m", "serial", "-c", f"run/{name}", "--train-iter", "5", "-s", "3"])
        assert code == 0


def test_yaml_env_step_and_exp_name(tmp_path: Path) -> None:
    import yaml

    main_config, create_config = pair("dqn")
    text = yaml.safe_dump({"main_config": main_config, "create_config": create_config})
    (tmp_path / "cfg.yaml").write_text(text)
    argv = ["-m", "serial", "-c", "cfg.yaml", "--env-step", "100", "--exp-name", "deep/mine"]
    assert main(argv) == 0
    assert result_of("deep/mine")["env_step"] >= 100
    assert main(argv) == 0  # a second run never writes into the first one
    assert len(list((tmp_path / "deep").iterdir())) == 2


@pytest.mark.parametrize("mode", ["serial", "serial_onpolicy"])
def test_on_policy_config_just_works(mode: str, tmp_path: Path) -> None:
    config_file(tmp_path, "ppo")
    assert main(["-m", mode, "-c", "cfg.py", "--env-step", "128"]) == 0
    assert result_of("run")["env_step"] == 128


def test_any_gymnasium_env_without_config() -> None:
    assert main(["-m", "serial", "-e", "CartPole-v1", "-p", "dqn", "--train-iter", "5"]) == 0
    assert result_of("CartPole-v1_dqn_seed0")["stop_value"] == 475


def test_several_seeds(tmp_path: Path, capsys: Any) -> None:
    config_file(tmp_path)
    argv = ["-m", "serial", "-c", "cfg.py", "-s", "0", "-s", "7", "--train-iter", "30"]
    assert main(argv) == 0
    output = capsys.readouterr().out
    for word in ("2 seeds", "mean", "std", "median", "IQM", "bootstrap"):
        assert word in output
    directory = tmp_path / "cfg_result"
    over = json.loads((directory / "summary.json").read_text())
    values = [result_of(f"cfg_result/seed{k}")["eval_value"] for k in (0, 7)]
    assert over["seeds"] == [0, 7]
    assert over["eval_value"] == values
    assert over["mean"] == pytest.approx(np.mean(values))
    assert over["median"] == pytest.approx(np.median(values))
    assert (directory / "curve.png").is_file()
    # Resuming keeps what is finished.
    before = (directory / "seed0" / "result.json").read_text()
    assert main([*argv, "--resume"]) == 0
    assert (directory / "seed0" / "result.json").read_text() == before


def test_profile(tmp_path: Path) -> None:
    config_file(tmp_path)
    assert main(["-m", "serial", "-c", "cfg.py", "--train-iter", "3", "--profile", "prof"]) == 0
    assert "cumulative" in (tmp_path / "prof" / "profile.txt").read_text()
    assert (tmp_path / "prof" / "profile.prof").is_file()


def test_eval(tmp_path: Path, capsys: Any) -> None:
    config_file(tmp_path)
    serial_pipeline("cfg.py", seed=0, max_train_iter=20)
    assert main(["-m", "eval", "-c", "cfg.py", "-s", "1"]) == 0
    found = capsys.readouterr().out
    path = "run/ckpt/ckpt_best.pth.tar"
    assert main(["-m", "eval", "-c", "cfg.py", "-s", "1", "--load-path", path]) == 0
    assert capsys.readouterr().out == found
    assert "seed 1: 2 episodes, return mean" in found
    assert eval("cfg.py", seed=1, load_path=path) > 0
    # Weights to start from.
    argv = ["-m", "serial", "-c", "cfg.py", "--load-path", path, "--train-iter", "2"]
    assert main([*argv, "--exp-name", "warm"]) == 0


def test_eval_saves_videos(tmp_path: Path) -> None:
    pytest.importorskip("imageio")
    pytest.importorskip("pygame")
    config_file(tmp_path)
    serial_pipeline("cfg.py", seed=0, max_train_iter=2)
    argv = ["-m", "eval", "-c", "cfg.py", "--replay-path", "videos"]
    code = "import sys; from ding.entry.cli import main; sys.exit(main(sys.argv[1:]))"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SDL_VIDEODRIVER": "dummy"}
    done = subprocess.run([sys.executable, "-c", code, *argv], env=env, check=False)
    assert done.returncode == 0
    assert len(list((tmp_path / "videos").glob("*.mp4"))) == 2  # the first episode of each env


def test_one_seed_names_the_run(tmp_path: Path, capsys: Any) -> None:
    config_file(tmp_path, changes={"exp_name": "run_seed0"})
    argv = ["-m", "serial", "-c", "cfg.py", "--train-iter", "2"]
    assert main([*argv, "-s", "3"]) == 0
    assert result_of("run_seed3")["seed"] == 3
    assert main(argv) == 0
    assert main([*argv, "-s", "4", "--exp-name", "mine_seed0"]) == 0
    assert main([*argv, "-s", "4", "--exp-name", "mine"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == [
        *("mine", "mine_seed4", "run_seed0", "run_seed3"),
    ]
    # Evaluated is the run of this seed, or the one of the config where there is none.
    for seed in ("3", "5"):
        assert main(["-m", "eval", "-c", "cfg.py", "-s", seed]) == 0
    (tmp_path / "run_seed3" / "ckpt" / "ckpt_best.pth.tar").unlink()
    assert main(["-m", "eval", "-c", "cfg.py", "-s", "3"]) == 1
    assert "run_seed3" in capsys.readouterr().err


def test_own_model(tmp_path: Path) -> None:
    import torch
    from torch import nn

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logit": self.layer(x.float())}

    model = Own()
    main_config, create_config = pair("dqn")
    main_config["policy"].pop("model")
    policy = serial_pipeline([main_config, create_config], model=model, max_train_iter=3)
    assert policy._model is model


def test_episodes_as_samples(tmp_path: Path) -> None:
    collect = dict(n_sample=None, n_episode=2, collector=dict(get_train_sample=True))
    serial_pipeline(pair("dqn", policy=dict(collect=collect)), max_train_iter=5)
    assert result_of("run")["train_iter"] == 5


# --- parts ---------------------------------------------------------------------------------------


def test_iqm_and_summary() -> None:
    assert iqm(np.array([100.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -50.0])) == 4.5
    over = summary([1.0, 2.0, 3.0, 4.0])
    assert over["mean"] == 2.5
    assert over["std"] == pytest.approx(np.std([1, 2, 3, 4]))
    assert over["median"] == 2.5
    assert over["iqm"] == 2.5
    assert over["iqm_low"] <= 2.5 <= over["iqm_high"]
    assert summary([3.0])["iqm"] == 3.0


class Stream:
    def __init__(self, terminal: bool) -> None:
        self.terminal, self.text = terminal, ""

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def shown(stream: Any, monkeypatch: Any, name: str = "run") -> str:
    """What is shown of 200 of 1,000 steps after 20 seconds."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    progress = Progress(name, Limits(env_step=1000), stream, lambda: [9.0, 13.0])
    progress.update(0, 0)
    now = 20.0
    state = {"history": [{"reward_mean": 12.34}], "best": 15.0}
    progress.evaluated(Evaluated(False, [12.34], state))
    progress.update(200, 10)
    line = stream.text
    progress.message("bye")
    assert stream.text.endswith("bye\n")
    return line


def test_progress_in_plain_lines(monkeypatch: Any) -> None:
    line = shown(Stream(terminal=False), monkeypatch)
    assert line == (
        "run  training  env steps 200/1,000  training return 11.0  evaluation 12.3 (best 15.0)  "
        "at most 1:20 left  10 steps/s  updates 10\n"
    )


@pytest.mark.parametrize(
    ("columns", "rows", "wanted"),
    [
        (
            200,
            24,
            [
                "runs/CartPole-v1_ppo_seed0  training  env steps 200/1,000  training return 11.0  "
                "evaluation 12.3 (best 15.0)  at most 1:20 left  10 steps/s  updates 10"
            ],
        ),
        (
            80,
            24,
            [
                "runs/CartPole-v1_ppo_seed0  training  env steps 200/1,000  training return 11.0",
                "  evaluation 12.3 (best 15.0)  at most 1:20 left  10 steps/s  updates 10",
            ],
        ),
        (
            40,
            4,
            [
                "...Pole-v1_ppo_seed0  training",
                "  env steps 200/1,000",
                "  training return 11.0",
            ],
        ),
    ],
)
def test_progress_is_a_panel_that_fits_the_terminal(
    columns: int, rows: int, wanted: list[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(rows))
    text = shown(Stream(terminal=True), monkeypatch, "runs/CartPole-v1_ppo_seed0")
    assert lines_of_panel(text) == wanted
    assert text.endswith(f"\x1b[{len(wanted) - 1}A\r" if len(wanted) > 1 else "10\r")
    assert all(len(line) < columns for line in wanted)


def test_long_phases_are_named_while_they_last(monkeypatch: Any) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream: Any = Stream(terminal=True)
    progress = Progress("run", Limits(), stream)
    progress.update(0, 0)
    for seconds in (0.01, 5.0, 0.1):
        with progress.during("evaluating"):
            now += seconds
    assert stream.text.count("evaluating") == 2, "the first, and the one after a long one"
    now += 1.0
    progress.update(10, 1)
    assert "run  training  env steps 10" in stream.text.rpartition(ERASE)[2]


def test_time_left_is_never_negative(monkeypatch: Any) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream: Any = Stream(terminal=False)
    progress = Progress("run", Limits(env_step=100), stream)
    progress.update(0, 0)
    now = 20.0
    progress.update(150, 10)
    assert "at most 0:00 left" in stream.text


def test_progress_without_a_limit_tells_no_time(monkeypatch: Any) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream: Any = Stream(terminal=False)
    progress = Progress("run", Limits(), stream)
    progress.update(0, 0)
    now = 100.0
    progress.update(100_000, 3_000)
    assert "1,000 steps/s" in stream.text
    assert "left" not in stream.text
