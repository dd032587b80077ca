"""GAIL's discriminator: what it learns, its three rewards, the survival trap."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
import torch

from ding.reward_model.gail import GailRewardModel
from ding.utils.batch import Rows, columns_of
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed

CFG: dict[str, Any] = dict(obs_shape=2, action_shape=3, action_space="discrete", hidden_size=16)


def steps(action: int, n: int = 200, seed: int = 0, **columns: Any) -> Rows:
    """The same observations, always one action."""
    obs = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    reward = np.full(n, 7, np.float32)
    return Rows(dict(obs=obs, action=np.full(n, action), reward=reward, **columns))


def trained(**cfg: Any) -> GailRewardModel:
    """The expert takes action 1, the agent action 0."""
    set_pkg_seed(0)
    model = GailRewardModel({**CFG, "update_per_collect": 60, "learning_rate": 0.01, **cfg})
    model.load_expert_data(steps(1))
    model.collect_data(steps(0, seed=1))
    model.train()
    return model


def reward(model: GailRewardModel, action: int) -> np.ndarray:
    return columns_of(model.estimate(steps(action, seed=2)))["reward"]


@pytest.mark.parametrize("more", [{}, dict(gradient_penalty=0.0), dict(spectral_norm=True)])
@pytest.mark.parametrize("kind", ["neg_log_d", "log_1md", "logit"])
def test_what_the_expert_does_is_worth_more(kind: str, more: dict[str, Any]) -> None:
    model = trained(reward_type=kind, **more)
    assert reward(model, 1).min() > reward(model, 0).max() + 0.1
    given = steps(0)
    model.estimate(given)
    assert (columns_of(given)["reward"] == 7).all()  # what was given stays


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("neg_log_d", math.log1p(math.exp(-2))),  # -log sigmoid(2)
        ("log_1md", -math.log1p(math.exp(2))),  # log(1 - sigmoid(2))
        ("logit", -2.0),
    ],
)
def test_rewards_by_hand(kind: str, value: float) -> None:
    model = GailRewardModel({**CFG, "reward_type": kind})
    assert float(model._reward(torch.tensor(2.0))) == pytest.approx(value, rel=1e-5)


def test_rewards_of_one_sign_are_told_where_episodes_terminate(
    caplog: pytest.LogCaptureFixture,
) -> None:
    over, never = np.arange(200) == 199, np.zeros(200, bool)
    for kind, sign in (("neg_log_d", "stay alive"), ("log_1md", "end episodes early")):
        caplog.clear()
        model = GailRewardModel({**CFG, "reward_type": kind})
        model.load_expert_data(steps(1, done=over, truncated=over))
        assert not caplog.records  # a time limit alone is no trap
        for _ in range(2):
            model.collect_data(steps(0, done=over, truncated=never))
        assert [sign in r.message for r in caplog.records] == [True]
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        trained().load_expert_data(steps(1, done=over, truncated=never))
    assert not caplog.records


def test_continuous_actions_and_images() -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 256, (8, 1, 36, 36), dtype=np.uint8)
    action = rng.normal(size=(8, 2)).astype(np.float32)
    data = Rows(dict(obs=frames, action=action, reward=np.zeros(8, np.float32)))
    cfg = dict(obs_shape=[1, 36, 36], action_shape=2, action_space="continuous")
    model = GailRewardModel(
        {**cfg, "update_per_collect": 1, "encoder_hidden_size_list": [4, 4, 4, 8]}
    )
    model.load_expert_data(data)
    model.collect_data(data)
    assert math.isfinite(model.train()["loss"])
    assert columns_of(model.estimate(data))["reward"].shape == (8,)


def test_a_restored_model_goes_on_bit_for_bit() -> None:
    one, other = (
        trained(),
        GailRewardModel({**CFG, "update_per_collect": 60, "learning_rate": 0.01}),
    )
    other.load_expert_data(steps(1))
    other.load_state_dict(one.state_dict())
    for model in (one, other):
        model.train()
    assert np.array_equal(reward(one, 1), reward(other, 1))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'logit'"):
        GailRewardModel({**CFG, "reward_type": "logits"})
    with pytest.raises(ConfigError, match=r"has no demonstrations; set reward_model\.data_path"):
        model = GailRewardModel(CFG)
        model.collect_data(steps(0))
        model.train()
