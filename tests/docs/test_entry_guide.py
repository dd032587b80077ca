"""The guides' command lines, main functions and pipelines."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

from ding.entry import cli, serial_pipeline
from dizoo.classic_control.cartpole.config.cartpole_dqn_config import create_config, main_config
from dizoo.classic_control.cartpole.entry import cartpole_dqn_main, cartpole_ppo_main
from dizoo.classic_control.pendulum.entry import pendulum_sac_main, pendulum_td3_main

REPO = Path(__file__).parents[2]
CARTPOLE = REPO / "dizoo/classic_control/cartpole"


def ding(line: str) -> int:
    return cli.main(shlex.split(line))


def result_of(directory: str | Path) -> dict:
    return json.loads((Path(directory) / "result.json").read_text())


def test_train_without_config() -> None:
    assert ding("-m serial -e cartpole -p dqn --train-iter 1e2 -s 0") == 0
    result = result_of("cartpole_dqn_seed0")
    assert result["train_iter"] >= 100 and result["seed"] == 0


@pytest.mark.parametrize("name", ["cartpole_dqn_config.py", "cartpole_dqn_config.yaml"])
def test_train_with_config(directory: Path, name: str) -> None:
    shutil.copy(CARTPOLE / "config" / name, directory)
    assert ding(f"-m serial -c {name} -s 0 --env-step 100 --exp-name run") == 0
    assert {"ckpt", "log", "total_config.py", "formatted_total_config.py", "result.json"} <= {
        path.name for path in Path("run").iterdir()
    }
    assert ding(f"-m eval -c {name} -s 0 --exp-name run") == 0


@pytest.mark.parametrize("option", ["-h", "-v"])
def test_help_and_version(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        ding(option)
    assert end.value.code == 0 and "ding" in capsys.readouterr().out


def test_main_function_by_file(directory: Path) -> None:
    shutil.copy(CARTPOLE / "entry/cartpole_dqn_main.py", directory)
    command = [sys.executable, "-u", "cartpole_dqn_main.py", "--max-env-step", "100"]
    env = os.environ | {"PYTHONPATH": str(REPO)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "results in cartpole_dqn_seed0" in done.stderr


def test_main_function_is_the_pipeline_by_hand() -> None:
    """Same seed, same parts: not a number differs."""
    cartpole_dqn_main.main(seed=3, max_env_step=600)
    serial_pipeline([main_config | {"exp_name": "pipeline"}, create_config], 3, max_env_step=600)
    logs = [
        [line[24:] for line in path.read_text().splitlines() if "reward_mean" in line]
        for name in ("cartpole_dqn_seed0", "pipeline")
        if (path := Path(name) / "log/evaluator/evaluator_logger.txt")
    ]
    assert logs[0] and logs[0] == logs[1][: len(logs[0])]


def test_other_main_functions() -> None:
    assert cartpole_ppo_main.main(seed=0, max_env_step=1024) > 0
    assert pendulum_sac_main.main(seed=0, max_env_step=1010) < 0
    assert pendulum_td3_main.main(seed=0, max_env_step=1010) < 0


def test_unified_entry_function() -> None:
    config = deepcopy(main_config)
    policy = serial_pipeline([config, create_config], seed=0, max_train_iter=50)
    assert config == main_config
    assert type(policy).__name__ == "DQNPolicy"
    assert result_of("cartpole_dqn_seed0")["train_iter"] >= 50


def test_own_env_is_found_beside_the_config(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A console script does not look for modules in the working directory by itself."""
    (directory / "short_env.py").write_text(
        "from ding.utils.registry import ENV_REGISTRY\n"
        "from dizoo.classic_control.cartpole.envs import CartPoleEnv\n"
        "@ENV_REGISTRY.register('short_cartpole')\n"
        "class ShortEnv(CartPoleEnv):\n"
        "    config = CartPoleEnv.config | {'max_episode_steps': 15}\n"
    )
    (directory / "short_config.py").write_text(
        "from dizoo.classic_control.cartpole.config.cartpole_dqn_config import main_config\n"
        "create_config = dict(policy=dict(type='dqn'),\n"
        "    env=dict(type='short_cartpole', import_names=['short_env']))\n"
    )
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in ("", str(directory))])
    assert ding("-m serial -c short_config.py --env-step 100 --exp-name short") == 0
    assert max(result_of("short")["eval_value_raw"]) <= 15
    assert ding("-m serial -c short/total_config.py --env-step 100 --exp-name again") == 0
    assert result_of("again")["curve"] == result_of("short")["curve"]
