"""Does it learn? Each run ends when its return is reached, and fails if that takes too long."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ding.entry import serial_pipeline
from dizoo.classic_control.cartpole.config import cartpole_dqn_config, cartpole_ppo_config
from dizoo.classic_control.pendulum.config import pendulum_sac_config

pytestmark = pytest.mark.learning


def result_of(config: Any, directory: Path, changes: dict[str, Any], **limits: int) -> Any:
    main = deepcopy(config.main_config)
    main["exp_name"] = str(directory / "run")
    for path, value in changes.items():
        section, key = path.split(".")
        main[section][key] = value
    serial_pipeline([main, config.create_config], seed=0, **limits)
    return json.loads((directory / "run" / "result.json").read_text())


def test_dqn_reaches_195_on_cartpole(tmp_path: Path) -> None:
    result = result_of(cartpole_dqn_config, tmp_path, {}, max_env_step=10_000)
    assert result["stop"] is True
    assert result["eval_value"] >= 195


def test_ppo_gets_far_on_cartpole(tmp_path: Path) -> None:
    result = result_of(cartpole_ppo_config, tmp_path, {"env.stop_value": 195}, max_env_step=60_000)
    assert result["stop"] is True


def test_sac_gets_far_on_pendulum(tmp_path: Path) -> None:
    changes = {"env.stop_value": -500}
    result = result_of(pendulum_sac_config, tmp_path, changes, max_env_step=6_000)
    assert result["stop"] is True
