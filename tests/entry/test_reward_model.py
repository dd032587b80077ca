"""Reward models as parts of a run: serial, parallel, resumed; what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from ding.entry import (
    serial_pipeline,
    serial_pipeline_reward_model_offpolicy,
    serial_pipeline_reward_model_onpolicy,
)
from ding.entry.cli import main
from ding.reward_model import BaseRewardModel, RewardModelError
from ding.utils.batch import Rows, columns_of
from ding.utils.checkpoint import load_checkpoint
from ding.utils.errors import ConfigError
from ding.utils.limits import Limits
from ding.utils.registry import REWARD_MODEL_REGISTRY

from .configs import config_file, pair
from .lockstep import SEED, generators, leaves, losses, parallel, serial

RND: dict[str, Any] = dict(type="rnd", update_per_collect=3, hidden_size_list=[8])
ICM: dict[str, Any] = dict(type="icm", update_per_collect=2, hidden_size_list=[8], batch_size=8)
NAMES = ("serial", "parallel")
CASES = {"dqn": RND, "ppo": ICM, "sac": {**ICM, "clear_buffer_per_iters": 3}}


def with_model(kind: str, name: str, section: dict[str, Any], **policy: Any) -> list[Any]:
    config = pair(kind, exp_name=name, reward_model=section, policy=policy)
    config[1]["env_manager"] = dict(type="base")
    return config


@pytest.mark.parametrize(("kind", "section"), [("dqn", RND), ("ppo", ICM)])
def test_parallel_learns_from_the_rewards_of_serial(
    kind: str, section: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)
    monkeypatch.setattr("ding.reward_model.base.new_generator", lambda: np.random.default_rng(14))
    results = []
    for name, run in zip(NAMES, (serial, parallel), strict=True):
        with generators(monkeypatch), pytest.MonkeyPatch.context() as patch:
            noted = losses(patch)
            run(with_model(kind, name, section), Limits(env_step=300))
            results.append(noted)
    assert len(results[0]) > 15 and results[0] == results[1]
    for written in ("best", "last"):
        assert Path(f"parallel/reward_model/ckpt/ckpt_{written}.pth.tar").is_file()
    last = [load_checkpoint(f"{run}/reward_model/ckpt/ckpt_last.pth.tar") for run in NAMES]
    assert all(np.array_equal(*pair) for pair in zip(*map(leaves, last), strict=True))


def trained(config: list[Any], steps: int, resume: bool = False) -> list[np.ndarray]:
    policy = serial_pipeline(config, SEED, max_env_step=steps, resume=resume)
    return [p.detach().numpy().copy() for p in policy._model.parameters()]


@pytest.mark.parametrize("kind", CASES)
def test_a_resumed_run_goes_on_bit_for_bit(kind: str) -> None:
    section = CASES[kind]
    whole = trained(with_model(kind, "whole", section), 300)
    trained(with_model(kind, "parts", section), 150)
    resumed = trained(with_model(kind, "parts", section), 300, resume=True)
    for one, other in zip(whole, resumed, strict=True):
        assert np.array_equal(one, other)


def test_another_model_than_the_saved_one_is_refused() -> None:
    trained(with_model("dqn", "run", RND), 50)
    assert Path("run/reward_model/ckpt/ckpt_last.pth.tar").is_file()
    with pytest.raises(ConfigError, match=r"these settings differ: reward_model\."):
        trained(with_model("dqn", "run", ICM), 100, resume=True)


def test_evaluations_go_by_the_envs_own_rewards() -> None:
    config = with_model("dqn", "run", {**RND, "intrinsic_reward_weight": 1e6})
    serial_pipeline_reward_model_offpolicy(config, SEED, max_env_step=200)
    curve = json.loads(Path("run/result.json").read_text())["curve"]
    returns = [point["reward_mean"] for point in curve]
    assert all(8 <= value <= 500 for value in returns)  # one a step
    assert any(Path("run/log/reward_model").iterdir())


@REWARD_MODEL_REGISTRY.register("test_faulty")
class Faulty(BaseRewardModel):
    config: ClassVar[dict[str, Any]] = dict(
        target_new_data_count=1, clear_buffer_per_iters=1, gives="nan"
    )

    def estimate(self, data: Any) -> Any:
        columns = columns_of(data)
        if self._cfg.gives == "rows":
            return data[:-1]
        return Rows({**columns, "reward": columns["reward"] * np.float32("nan")})


@pytest.mark.parametrize(
    ("gives", "message"), [("nan", "NaN or infinite"), ("rows", "rewards for")]
)
def test_a_model_that_gives_nonsense_ends_the_run_with_its_name(gives: str, message: str) -> None:
    config = with_model("dqn", "run", dict(type="test_faulty", gives=gives))
    with pytest.raises(RewardModelError, match=f"'test_faulty' gave .*{message}.* saved in 'run'"):
        serial_pipeline(config, SEED, max_env_step=100)
    assert Path("run/ckpt/run_state.pth.tar").is_file()


def test_shapes_that_are_not_the_envs_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"reward_model.obs_shape = 5, but the env has 4"):
        trained(with_model("dqn", "run", {**RND, "obs_shape": 5}), 50)
    with pytest.raises(ConfigError, match=r"reward_model.action_space = 'continuous'"):
        trained(with_model("dqn", "run", {**ICM, "action_space": "continuous"}), 50)
    assert not Path("run").exists()


def test_intrinsic_returns_of_their_own_go_with_ppo() -> None:
    new = {**RND, "intrinsic_reward_type": "new"}
    with pytest.raises(ConfigError, match=r"policy 'dqn' does not read; set policy.intrinsic"):
        trained(with_model("dqn", "run", new), 50)
    with pytest.raises(ConfigError, match=r"set reward_model.intrinsic_reward_type = 'new'"):
        trained(with_model("ppo", "run", RND, intrinsic=dict(weight=0.5)), 50)
    config = with_model("ppo", "run", new, intrinsic=dict(weight=0.5))
    policy = serial_pipeline(config, SEED, max_env_step=128)
    assert policy._intrinsic is not None and policy._intrinsic._scale.std != 1.0


def test_established_entries_check_what_they_are_given() -> None:
    with pytest.raises(ConfigError, match="the config has no reward_model"):
        serial_pipeline_reward_model_offpolicy(pair("dqn"), SEED)
    with pytest.raises(ConfigError, match="use serial_pipeline_reward_model_onpolicy"):
        serial_pipeline_reward_model_offpolicy(with_model("ppo", "run", RND), SEED)
    serial_pipeline_reward_model_onpolicy(with_model("ppo", "run", RND), SEED, max_env_step=64)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-m", "serial_reward_model", "--env-step", "50", "-c"]
    plain = config_file(tmp_path, "dqn", {}, "plain.py")
    assert main([*words, str(plain)]) == 1
    assert "the config has no reward_model" in capsys.readouterr().err
    learned = config_file(tmp_path, "dqn", {"reward_model": RND}, "learned.py")
    assert main([*words, str(learned)]) == 0
