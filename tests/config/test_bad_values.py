"""Values and files that make no sense are named, with what would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ding.config import explain, read_config_yaml
from ding.utils.errors import ConfigError

from .test_effect import compiled


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (
            "dqn",
            {"policy.model.encoder_hidden_size_list": 128},
            "'policy.model.encoder_hidden_size_list' must be list[int], got 128 (int)",
        ),
        (
            "ppo",
            {"policy.model.encoder_hidden_size_list": [64, "64"]},
            "'policy.model.encoder_hidden_size_list' must be list[int], got [64, '64'] (list)",
        ),
        (
            "dqn",
            {"policy.learn.threads": 1000},
            "policy.learn.threads = 1000: must be between 1 and 256",
        ),
        ("ppo", {"policy.learn.clip_ratio": -0.2}, "policy.learn.clip_ratio = -0.2: must be at"),
        ("ppo", {"policy.learn.entropy_weight": -1}, "policy.learn.entropy_weight = -1.0: must be"),
        ("impala", {"policy.learn.value_weight": -1}, "policy.learn.value_weight = -1.0: must be"),
        (
            "dqn",
            {"policy.other.eps.start": 0.1, "policy.other.eps.end": 0.5},
            "policy.other.eps.end = 0.5: must be between 0 and 0.1",
        ),
        (
            "ppo",
            {"policy.on_policy": False},
            "policy.on_policy = False: policy 'ppo' learns on-policy; leave it out",
        ),
        (
            "dqn",
            {"policy.on_policy": True},
            "policy.on_policy = True: policy 'dqn' learns from a replay buffer; leave it out",
        ),
    ],
)
def test_senseless_values_are_refused(kind: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        compiled(kind, changes)


def test_policies_of_ones_own_may_learn_on_policy() -> None:
    from ding.policy.config import PolicyConfig

    assert PolicyConfig(on_policy=True).on_policy


def test_a_misspelt_section_is_explained_by_the_nearest() -> None:
    cfg = compiled("dqn", {})
    with pytest.raises(ConfigError, match=r"no config key 'policy.lern'; did you mean 'policy.le"):
        explain(cfg, "policy.lern")
    with pytest.raises(ConfigError, match=r"did you mean 'policy.learn.batch_size'\?"):
        explain(cfg, "policy.lern.batch_size")


def test_a_key_that_stands_twice_in_a_yaml_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("main_config:\n  a: 1\n  b: 2\n  a: 3\n")
    message = f"{file}:4: not valid YAML: the key 'a' stands twice, first in line 2"
    with pytest.raises(ConfigError, match=re.escape(message)):
        read_config_yaml(file)
    file.write_text("base: &base {a: 1, b: 2}\nmain_config: {<<: *base, a: 3}\n")
    assert read_config_yaml(file)["main_config"] == {"a": 3, "b": 2}


@pytest.mark.parametrize("content", [b"\x80\x04\x95\xff\xfe", b"\x00\x01\x02: 3\n", b"a: \x07\n"])
def test_a_binary_file_is_no_yaml(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"c\.yaml: not valid YAML: .* is no text"):
        read_config_yaml(file)


@pytest.mark.parametrize(
    "wrapper",
    [
        dict(type="obs_norm", clip_range=(-5.0, 5.0)),
        dict(type="obs_norm", kwargs=dict(clip_range=(-5.0, 5.0))),
    ],
)
def test_a_normaliser_is_the_policys_alone_however_it_is_written(wrapper: dict[str, Any]) -> None:
    """It would normalise twice if the env kept it too."""
    cfg = compiled("ppo", {"env.env_wrapper": [wrapper, "delay_reward"]})
    assert cfg.env.env_wrapper == ["delay_reward"]
    assert cfg.policy.obs_norm and cfg.policy.obs_norm_range == (-5.0, 5.0)
    with pytest.raises(ConfigError, match=r"'obs_norm' has no 'clip_rang'; did you mean 'clip_ra"):
        compiled("ppo", {"env.env_wrapper": [dict(type="obs_norm", clip_rang=1)]})
