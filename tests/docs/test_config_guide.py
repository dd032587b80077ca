"""The guides' snippets about configs."""

from __future__ import annotations

import re
from copy import deepcopy
from importlib import import_module
from pathlib import Path

import pytest
from easydict import EasyDict

from ding.config import compile_config, explain, read_config
from ding.entry import serial_pipeline
from ding.utils.errors import ConfigError
from dizoo.classic_control.cartpole.config.cartpole_dqn_config import create_config, main_config

YAML = Path(__file__).parents[2] / "dizoo/classic_control/cartpole/config/cartpole_dqn_config.yaml"


def compiled(user: dict) -> EasyDict:
    return compile_config(user, auto=True, create_cfg=create_config, save_cfg=False)


def test_outline_of_the_whole_config() -> None:
    cfg = compiled(main_config)
    assert {"manager", "stop_value", "n_evaluator_episode"} <= cfg.env.keys()
    assert {"model", "collect", "learn", "eval", "other"} <= cfg.policy.keys()
    assert cfg.policy.other.replay_buffer.replay_buffer_size == 20000
    assert cfg.policy.eval.evaluator.stop_value == cfg.env.stop_value == 195


@pytest.mark.parametrize("place", ["policy", "learn"])
def test_nstep_is_customised_in_the_user_config(place: str) -> None:
    user = deepcopy(main_config)
    del user["policy"]["nstep"]
    section = user["policy"] if place == "policy" else user["policy"]["learn"]
    section["nstep"] = 3
    assert compiled(user).policy.nstep == 3


def test_the_users_value_wins() -> None:
    user = deepcopy(main_config)
    user["policy"]["discount_factor"] = 0.5
    assert compiled(user).policy.discount_factor == 0.5


@pytest.mark.parametrize("path", ["env.stop_value", "env.n_evaluator_episode"])
def test_what_must_be_specified(path: str) -> None:
    user = deepcopy(main_config)
    section, key = path.split(".")
    del user[section][key]
    with pytest.raises(ConfigError, match=rf"'{path}' is required"):
        compiled(user)


def test_a_misspelt_key_names_the_nearest() -> None:
    user = deepcopy(main_config)
    user["policy"]["learn"]["lerning_rate"] = 0.1
    with pytest.raises(ConfigError, match=r"policy\.learn\.lerning_rate.*'learning_rate'"):
        compiled(user)


def test_merged_config_is_saved_and_runs_again(directory: Path) -> None:
    cfg = compile_config(main_config, auto=True, create_cfg=create_config)
    for name in ("total_config.py", "formatted_total_config.py"):
        main, create = read_config(directory / cfg.exp_name / name)
        assert compile_config(main, auto=True, create_cfg=create, save_cfg=False) == cfg


def test_yaml_config_trains(directory: Path) -> None:
    policy = serial_pipeline(str(YAML), seed=0, max_env_step=100)
    assert policy.cfg.learn.learning_rate == 1e-3
    assert (directory / "cartpole_dqn_yaml_seed0" / "result.json").is_file()


def test_python_config_with_an_easydict_alone(directory: Path) -> None:
    """A file that defines only `main_config`, which names its parts itself."""
    (directory / "config.py").write_text(
        "from easydict import EasyDict\n"
        "cartpole_dqn_default_config = dict(\n"
        "    exp_name='alone',\n"
        "    env=dict(env_id='CartPole-v1', collector_env_num=4, evaluator_env_num=2,\n"
        "             n_evaluator_episode=2, stop_value=195),\n"
        "    policy=dict(type='dqn', on_policy=False, collect=dict(n_sample=8)),\n"
        ")\n"
        "cartpole_dqn_default_config = EasyDict(cartpole_dqn_default_config)\n"
        "main_config = cartpole_dqn_default_config\n"
    )
    serial_pipeline("config.py", seed=0, max_env_step=100)
    assert (directory / "alone" / "ckpt").is_dir()


def test_one_config_that_names_its_parts(directory: Path) -> None:
    config = deepcopy(main_config)
    config.policy.type, config.env.type = "dqn", "cartpole"
    assert type(serial_pipeline(config, max_env_step=100)).__name__ == "DQNPolicy"
    del config.policy["type"]
    with pytest.raises(ConfigError, match=r"or one config with its policy\.type"):
        serial_pipeline(config)


def test_declaring_settings_as_in_the_guide(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[2] / "docs/config.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    (directory / "settings_of_the_guide.py").write_text(block)
    monkeypatch.syspath_prepend(str(directory))
    guide = import_module("settings_of_the_guide")
    typed, by_example = guide.Typed, guide.ByExample
    cfg = compile_config(
        {"policy": {"n_step": 1e2, "schedule": {"kind": "exp"}}, "env": {"hook": {"mine": 1}}},
        policy=typed,
        env=by_example,
        save_cfg=False,
    )
    assert (cfg.policy.n_step, cfg.policy.schedule) == (100, {"start": 0.5, "kind": "exp"})
    assert cfg.env.hook == {"freq": 100, "mine": 1}
    assert explain(cfg, "policy.schedule.start").endswith(
        "Shown by `explain` and in error messages."
    )
    assert explain(cfg, "env.n_step").endswith("A comment above a key documents it.")
    for wrong in ("1", True):
        with pytest.raises(ConfigError, match=r"'policy\.n_step' must be int"):
            compile_config({"policy": {"n_step": wrong}}, policy=typed, save_cfg=False)
    with pytest.raises(ConfigError, match=r"'env\.n_stp' \(= 2\); did you mean 'n_step'"):
        compile_config({"env": {"n_stp": 2}}, policy=typed, env=by_example, save_cfg=False)
