"""Hindsight as part of a run: serial, parallel, resumed, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.entry import serial_pipeline
from ding.pipeline.run import Run
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.limits import Limits
from dizoo.bitflip.config.bitflip_her_dqn_config import create_config, main_config
from dizoo.bitflip.entry import bitflip_dqn_main

from .configs import pair
from .lockstep import SEED, generators, losses, parallel, serial


def small(exp_name: str, policy: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Six bits, tiny network."""
    config = pair("dqn", exp_name=exp_name, policy=policy or {})
    main, create = config[0], config[1]
    main["env"].pop("env_id")
    main["env"]["n_bits"] = 6
    main["policy"]["other"]["her"] = main_config["policy"]["other"]["her"]
    create["env"], create["env_manager"] = create_config["env"], dict(type="base")
    return [main, create]


@pytest.mark.parametrize("policy", [{}, dict(nstep=3)])
def test_parallel_draws_what_serial_draws(
    policy: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    results = []
    for name, run in (("serial", serial), ("parallel", parallel)):
        with generators(monkeypatch), pytest.MonkeyPatch.context() as patch:
            noted = losses(patch)
            run(small(name, policy), Limits(env_step=300))
            results.append(noted)
    assert len(results[0]) > 20 and results[0] == results[1]


def trained(config: list[Any], steps: int, resume: bool = False) -> list[np.ndarray]:
    policy = serial_pipeline(config, SEED, max_env_step=steps, resume=resume)
    return [p.detach().numpy().copy() for p in policy._model.parameters()]


def test_a_resumed_run_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = trained(small("whole"), 400)
    trained(small("parts"), 200)
    resumed = trained(small("parts"), 400, resume=True)
    for one, other in zip(whole, resumed, strict=True):
        assert np.array_equal(one, other)


def test_parts_that_differ_from_the_saved_ones_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = pytest.raises(CheckpointError, match="has a part 'novelty'")
    with Run(small("parts"), SEED) as run, named:
        run.parts.load_state_dict({"novelty": {}})


def test_on_policy_algorithms_refuse_hindsight(tmp_path: Path) -> None:
    config = pair("ppo", exp_name=str(tmp_path / "run"), policy=dict(other=dict(her={})))
    with pytest.raises(ConfigError, match="policy 'ppo' learns on-policy"):
        serial_pipeline(config, SEED)


def test_an_env_without_goals_refuses_hindsight(tmp_path: Path) -> None:
    config = pair("dqn", exp_name=str(tmp_path / "run"), policy=dict(other=dict(her={})))
    with pytest.raises(ConfigError, match="needs an env with goals"):
        serial_pipeline(config, SEED)
    assert not (tmp_path / "run").exists()


def test_hindsight_by_hand_learns_five_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bitflip_dqn_main.main(seed=1) >= 0.9  # random play: 0.14
