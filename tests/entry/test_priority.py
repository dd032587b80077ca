from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

from ding.entry import serial_pipeline
from dizoo.classic_control.cartpole.config.cartpole_dqn_config import create_config, main_config


def test_priority_alone_chooses_a_buffer_that_has_priorities(tmp_path: Path) -> None:
    main = deepcopy(main_config)
    main["exp_name"] = str(tmp_path / "run")
    main["policy"] |= dict(priority=True, priority_IS_weight=True)
    main["env"] |= dict(evaluator_env_num=1, n_evaluator_episode=1)
    serial_pipeline([main, deepcopy(create_config)], seed=0, max_env_step=400)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["train_iter"] > 0
    assert "{'type': 'advanced'}" in (tmp_path / "run" / "total_config.py").read_text()
