"""The established tutorial: its names, snippets, single config and command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import deepcopy
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import torch
from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config
from app_zoo.classic_control.cartpole.envs import CartPoleEnv
from nervex.armor import Armor
from nervex.data import BufferManager
from nervex.entry import serial_pipeline
from nervex.model import ConvDiscreteNet, FCDiscreteNet
from nervex.worker.actor.env_manager import SubprocessEnvManager
from torch import nn

from ding.policy import DQNPolicy
from ding.utils.errors import ConfigError
from ding.utils.registry import POLICY_REGISTRY
from nervex import main

FEW = 100


def test_training_script() -> None:
    config = deepcopy(cartpole_dqn_default_config)
    policy = serial_pipeline(config, seed=0, max_env_step=FEW)
    assert type(policy) is DQNPolicy and policy.cfg.learn.batch_size == 64
    assert config == cartpole_dqn_default_config


def test_changes_that_the_tutorial_suggests() -> None:
    config = deepcopy(cartpole_dqn_default_config)
    config.policy.policy_type = "c51"
    config.policy.use_cuda = False
    config.evaluator.stop_val = 100
    config.env.env_manager_type = "aynsc_subprocess"  # as it is spelt there
    config.env.actor_env_num = config.env.evaluator_env_num = 1
    config.policy.model.pop("hidden_dim_list")
    policy = serial_pipeline(config, seed=0, max_env_step=FEW)
    assert type(policy).__name__ == "C51Policy"
    with pytest.raises(ConfigError, match="names no policy"):
        serial_pipeline({"env": {}})


@pytest.fixture
def tutorial_policy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The policy that the tutorial writes, registered for one test."""
    monkeypatch.setattr(POLICY_REGISTRY, "_table", dict(POLICY_REGISTRY._table))
    name = "nervex.policy.dqn"
    spec = spec_from_file_location(name, Path(__file__).with_name("tutorial_dqn.py"))
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module.DQNPolicy
    del sys.modules[name]


def test_policy_of_the_tutorial(tutorial_policy: Any) -> None:
    config = deepcopy(cartpole_dqn_default_config)
    policy = serial_pipeline(config, seed=0, max_env_step=200)
    assert type(policy) is tutorial_policy and POLICY_REGISTRY.get("dqn") is tutorial_policy
    assert isinstance(policy._model, FCDiscreteNet)
    config.policy.learn.algo.nstep = config.policy.collect.algo.nstep = 3
    policy = serial_pipeline(config, seed=0, policy_fn=tutorial_policy, max_env_step=200)
    assert policy._nstep == 3


@pytest.mark.learning
def test_policy_of_the_tutorial_learns(tutorial_policy: Any, directory: Path) -> None:
    config = deepcopy(cartpole_dqn_default_config)
    config.evaluator.stop_val = 120
    serial_pipeline(config, seed=0, max_env_step=10_000)
    assert '"stop": true' in (directory / "cartpole_dqn/result.json").read_text()


class FCDQN(nn.Module):
    def __init__(self, input_dim, action_dim, hidden_dim_list=(128, 256, 256), device="cpu"):
        super().__init__()
        self.act = nn.ReLU()
        layers = []
        for dim in hidden_dim_list:
            layers.append(nn.Linear(input_dim, dim))
            layers.append(self.act)
            input_dim = dim
        self.main = nn.Sequential(*layers)
        self.action_dim = action_dim
        self.pred = nn.Linear(input_dim, action_dim)
        self.device = device

    def forward(self, x, info=None):
        x = x["obs"]
        x = self.main(x)
        x = self.pred(x)
        return {"logit": x}


def test_network_for_an_env() -> None:
    env = CartPoleEnv(cfg={})
    env_info = env.info()
    obs_shape = env_info.obs_space.shape
    act_shape = env_info.act_space.shape
    model = FCDQN(obs_shape, act_shape)
    assert model({"obs": torch.zeros(3, 4)})["logit"].shape == (3, 2)
    same = FCDiscreteNet(obs_shape, act_shape)
    assert same({"obs": torch.zeros(3, 4)})["logit"].shape == (3, 2)
    image = ConvDiscreteNet((4, 84, 84), 6)
    assert image({"obs": torch.zeros(1, 4, 84, 84)})["logit"].shape == (1, 6)


def test_armor_keeps_a_target_and_samples() -> None:
    model = FCDQN(4, 2)
    armor = Armor(model)
    armor.add_model("target", update_type="assign", update_kwargs={"freq": 2})
    armor.add_plugin("main", "argmax_sample")
    armor.add_plugin("target", "grad", enable_grad=False)
    obs = torch.rand(5, 4)
    output = armor.forward(obs)
    assert output["logit"].requires_grad and output["action"].shape == (5,)
    before = armor.target_forward(obs)["logit"]
    assert not before.requires_grad
    torch.testing.assert_close(before, output["logit"].detach())
    with torch.no_grad():
        model.pred.bias += 1
    armor.target_update(armor.state_dict()["model"])
    torch.testing.assert_close(armor.target_forward(obs)["logit"], before)
    armor.target_update(armor.state_dict()["model"])
    torch.testing.assert_close(armor.target_forward(obs)["logit"], before + 1)


def test_four_envs_in_processes() -> None:
    env_manager = SubprocessEnvManager(
        env_fn=CartPoleEnv, env_cfg=[{} for _ in range(4)], env_num=4
    )
    with env_manager:
        env_manager.launch()
        assert env_manager.env_num == 4
    with pytest.raises(ConfigError, match="env_num = 3, but there are 4 configs"):
        SubprocessEnvManager(env_fn=CartPoleEnv, env_cfg=[{}] * 4, env_num=3)


def test_queue_of_data() -> None:
    cfg = {"meta_maxlen": 10}
    buffer_ = BufferManager(cfg)
    for _ in range(10):
        buffer_.push_data({"data": "placeholder"})
    data = buffer_.sample(4)
    assert [dict(row) for row in data] == [{"data": "placeholder"}] * 4
    with pytest.raises(ConfigError, match="'maxlen'"):
        BufferManager({"maxlen": 10})


CONFIG = """
from easydict import EasyDict
from app_zoo.classic_control.cartpole.entry import cartpole_dqn_default_config
from nervex import configs_of
main_config, create_config = map(EasyDict, configs_of(cartpole_dqn_default_config))
"""


def test_command(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "config.py").write_text(CONFIG)
    assert main(["-m", "serial", "-c", "config.py", "-s", "0", "--env-step", "100"]) == 0
    capsys.readouterr()
    words = "-m parallel -p slurm -c config.py -s 0 --actor_host SH-10 --learner_host SH-10"
    assert main(words.split()) == 1
    assert "ding -m dist --module config -p slurm" in capsys.readouterr().err
