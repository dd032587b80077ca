"""Does it learn? Each run ends when its return is reached, and fails if that takes too long."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ding.config import override
from ding.entry import serial_pipeline
from dizoo.classic_control.cartpole.config import cartpole_dqn_config, cartpole_ppo_config
from dizoo.classic_control.pendulum.config import pendulum_sac_config

pytestmark = pytest.mark.learning


def result_of(config: Any, directory: Path, changes: dict[str, Any], **limits: int) -> Any:
    main = override(config.main_config, {"exp_name": str(directory / "run"), **changes})
    serial_pipeline([main, deepcopy(config.create_config)], seed=0, **limits)
    return json.loads((directory / "run" / "result.json").read_text())


def test_dqn_reaches_195_on_cartpole(tmp_path: Path) -> None:
    result = result_of(cartpole_dqn_config, tmp_path, {}, max_env_step=10_000)
    assert result["stop"] is True
    assert result["eval_value"] >= 195


def test_ppo_gets_far_on_cartpole(tmp_path: Path) -> None:
    result = result_of(cartpole_ppo_config, tmp_path, {"env.stop_value": 195}, max_env_step=60_000)
    assert result["stop"] is True


def test_sac_gets_far_on_pendulum(tmp_path: Path) -> None:
    """In half of the steps that the zoo's settings take, by larger ones on smaller networks."""
    changes = {
        "env.stop_value": -500,
        "env.evaluator_env_num": 10,
        "env.n_evaluator_episode": 10,
        "policy.random_collect_size": 500,
        "policy.model.actor_head_hidden_size": 64,
        "policy.model.critic_head_hidden_size": 64,
        "policy.learn.batch_size": 64,
        "policy.learn.learning_rate_q": 3e-3,
        "policy.learn.learning_rate_policy": 3e-3,
        "policy.learn.target_theta": 0.01,
        "policy.eval.evaluator.eval_freq": 500,
    }
    result = result_of(pendulum_sac_config, tmp_path, changes, max_env_step=4_000)
    assert result["stop"] is True
