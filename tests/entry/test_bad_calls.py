"""Calls from Python that cannot work: one sentence says what was given and what to give."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

import ding
from ding.entry import Run, parallel_pipeline, serial_pipeline, serial_pipeline_sqil
from ding.envs.manager import SyncSubprocessEnvManager
from ding.utils.errors import DingError
from ding.worker import SampleCollector
from entry.configs import CREATE, MAIN, changed, pair


class Steady(gym.Env):
    """Sees the same number ten times."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space: gym.Space = gym.spaces.Discrete(2)
    number = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 10
        return np.full(4, self.number, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.full(4, self.number, np.float32), 1.0, self.left == 0, False, {}


class OutOfBounds(Steady):
    number = 1e20


class Square(Steady):
    action_space = gym.spaces.Box(-1, 1, (2, 2), np.float32)


class Net(nn.Module):
    def __init__(self, n_in: int = 4, n_out: int = 2, key: str = "logit") -> None:
        super().__init__()
        self.layer, self.key = nn.Linear(n_in, n_out), key

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {self.key: self.layer(x)}


def trained(kind: str = "dqn", changes: dict[str, Any] | None = None, **options: Any) -> Any:
    config = [changed(MAIN[kind], changes or {}), CREATE[kind]]
    return serial_pipeline(config, 0, **{"max_env_step": 64, "max_train_iter": 2, **options})


def evaluated(data: Any) -> Any:
    with Run(pair("dqn"), 0) as run:
        return run.policy.eval_mode.forward(data)


def with_env_id(env_id: Any) -> Any:
    return trained(changes={"env.env_id": env_id})


def with_setting(setting: Any) -> Any:
    return trained(env_setting=setting)


def with_wrapper(wrapper: Any) -> Any:
    return trained(changes={"env.env_wrapper": [wrapper]})


def with_activation() -> Any:
    return trained(changes={"policy.model.activation": lambda x: x})


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "env_id: an env": (lambda: with_env_id(Steady()), r"env\.env_id.*one env.*ding\.train\(env"),
    "env_id: a lambda": (lambda: with_env_id(lambda: Steady()), r"env\.env_id.*has no name"),
    "env_id: a number": (lambda: with_env_id(3), r"env_id = 3: give a registered id"),
    "env_setting: a number": (lambda: with_setting(3), r"env_setting = 3: give \(env_fn"),
    "env_setting: two": (lambda: with_setting((Steady, [])), r"env_setting = .*: give \(env_fn"),
    "env_setting: no list": (
        lambda: with_setting((Steady, [{}], {})),
        r"evaluator_env_cfg of env_setting = \{\}",
    ),
    "env_setting: without cfg": (
        lambda: with_setting((Steady, [{}], [{}])),
        r"env_fn of env_setting.*'cfg'",
    ),
    "steps: a string": (lambda: trained(max_env_step="1e3"), r"max_env_step = '1e3'.*like 100000"),
    "steps: none": (lambda: trained(max_env_step=0), r"max_env_step = 0.*1 at least"),
    "steps: below none": (lambda: trained(max_env_step=-5), r"max_env_step = -5"),
    "steps: not a number": (lambda: trained(max_env_step=float("nan")), r"max_env_step = nan"),
    "steps: in train": (lambda: ding.train("CartPole-v1", "dqn", steps=0), r"steps = 0"),
    "updates: below none": (lambda: trained(max_train_iter=-1), r"max_train_iter = -1.*0 at least"),
    "model: a class": (lambda: trained(model=Net), r"model = .*Net.*make one: Net\(\.\.\.\)"),
    "model: another key": (lambda: trained(model=Net(key="q")), r"network Net must have forward"),
    "model: input": (lambda: trained(model=Net(7)), r"network Net must have.*Box.*2x4 and 7x2"),
    "model: outputs": (lambda: trained(model=Net(4, 7)), r"must be \(2, 2\).*it is \(2, 7\)"),
    "model: PPO's": (lambda: trained("ppo", model=Net()), r"Net must have forward\(obs, mode\)"),
    "model: SAC's": (lambda: trained("sac", model=Net(3, 1)), r"Net must have.*takes no 'mode'"),
    "forward: an array": (lambda: evaluated(np.zeros((2, 4))), r"\{env_id: obs\}.*given ndarray"),
    "forward: nothing": (lambda: evaluated({}), r"\{env_id: obs\}.*an empty dict"),
    "activation: a lambda": (with_activation, r"model\.activation.*relu, tanh"),
    "wrapper: a lambda": (lambda: with_wrapper(lambda env: env), r"env_wrapper\[0\].*has no name"),
    "wrapper: no module": (lambda: with_wrapper("no_mod:Wrap"), r"'no_mod:Wrap': No module named"),
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    call, pattern = REFUSED[name]
    with pytest.raises(DingError, match=pattern) as refusal:
        call()
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.rglob("ckpt"))


ACCEPTED: dict[str, Callable[[], Any]] = {
    "env_id: a class": lambda: with_env_id(Steady),
    "model: a Sequential": lambda: trained(model=nn.Sequential(nn.Linear(4, 2))),
    "actions of two axes": lambda: ding.train(Square, "sac", steps=300),
    "wrapper: a class": lambda: with_wrapper(gym.wrappers.Autoreset),
    "wrapper: a place": lambda: with_wrapper(
        {"type": "gymnasium.wrappers:ClipReward", "kwargs": {"max_reward": 0.5}}
    ),
    "steps: infinite": lambda: trained(max_env_step=float("inf")),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert ACCEPTED[name]() is not None


def test_an_id_of_the_script_is_unknown_in_processes_that_are_spawned() -> None:
    gym.register("ding_tests/Steady-v0", entry_point=Steady)
    make_env = partial(ding.envs.DingEnvWrapper, cfg={"env_id": "ding_tests/Steady-v0"})
    manager = SyncSubprocessEnvManager([make_env], {"context": "spawn"})
    with (
        manager,
        pytest.raises(DingError, match=r"unknown env_id.*create_config\.env\.import_names"),
    ):
        manager.launch()


def test_numbers_far_outside_of_their_space_are_said(caplog: Any, capsys: Any) -> None:
    with pytest.raises(DingError, match="total_loss is inf"):
        ding.train(OutOfBounds, "dqn", steps=300)
    assert (
        "holds 1e+20, outside the env's observation_space" in caplog.text + capsys.readouterr().err
    )


def test_a_seed_that_nobody_gave_takes_nothing_from_the_config(caplog: Any, tmp_path: Path) -> None:
    config = pair("dqn", seed=77)
    with pytest.raises(DingError, match="no expert"):
        serial_pipeline_sqil(config)
    with Run(config) as run:
        assert run.seed == 77
    with pytest.raises(DingError, match="max_env_step"):
        parallel_pipeline(config, max_env_step=0)
    assert "gives way" not in caplog.text


def test_workers_made_by_hand_leave_no_directory(tmp_path: Path) -> None:
    with Run(pair("dqn", exp_name="named"), 0) as run:
        cfg, mode = run.cfg.policy.collect.collector, run.policy.collect_mode
        env = ding.envs.BaseEnvManager([lambda: ding.envs.DingEnvWrapper(Steady())], {})
        with SampleCollector(cfg, env, mode) as collector:
            assert len(collector.collect(n_sample=30, policy_kwargs={"eps": 0.5})) == 30
    assert [path.name for path in tmp_path.iterdir()] == ["named"]
