"""Names of runs, and that no run of another seed is where the name says seed 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ding
from ding.entry import serial_pipeline
from ding.entry.cli import main as command
from ding.entry.predefined import predefined_config
from ding.pipeline.naming import name_with_seed, name_without_seed

SMALL: dict[str, Any] = {
    **dict.fromkeys(("env.collector_env_num", "env.evaluator_env_num"), 1),
    "env.n_evaluator_episode": 1,
    "collect.n_sample": 8,
    "learn.batch_size": 8,
    "env.stop_value": 1e9,
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_name_that_ends_in_a_seed_ends_in_that_of_the_run() -> None:
    assert name_with_seed("runs/cartpole_dqn_seed0", 3) == "runs/cartpole_dqn_seed3"
    assert name_with_seed("cartpole_dqn", 3) == "cartpole_dqn"
    assert name_with_seed("cartpole_dqn", 3, add=True) == "cartpole_dqn_seed3"
    assert name_without_seed("runs/cartpole_dqn_seed12") == "runs/cartpole_dqn"


@pytest.mark.parametrize("env", ["CartPole-v1", "cartpole"])
def test_runs_are_found_under_their_seed(env: str) -> None:
    words = [f"{key}={value}" for key, value in SMALL.items()]
    assert command(["train", env, "dqn", "--steps", "16", "--seed", "3", *words]) == 0
    line = ["-m", "serial", "-e", env, "-p", "dqn", "--train-iter", "1"]
    assert command([*line, "-s", "4"]) == 0
    assert ding.train(env, "dqn", steps=16, seed=5, **SMALL).directory.name == f"{env}_dqn_seed5"
    serial_pipeline(predefined_config(env, "dqn"), seed=6, max_train_iter=1)
    seeds = {
        run.name: json.loads((run / "result.json").read_text())["seed"] for run in Path().iterdir()
    }
    assert seeds == {f"{env}_dqn_seed{k}": k for k in (3, 4, 5, 6)}
