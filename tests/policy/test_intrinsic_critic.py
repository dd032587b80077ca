"""Intrinsic returns: their own discount, past the ends of episodes; beside the env's in PPO."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import PPOPolicy
from ding.policy.intrinsic_critic import IntrinsicCritic, IntrinsicReturnConfig
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError

MODEL = dict(obs_shape=1, encoder_hidden_size_list=[16])


def critic(**cfg: Any) -> IntrinsicCritic:
    """Its value of an observation is that observation."""
    made = IntrinsicCritic(
        IntrinsicReturnConfig(discount_factor=0.5, **cfg),
        MODEL,
        lambda obs: obs,
        torch.device("cpu"),
    )
    made._network = lambda obs: obs  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("episodic", "expected"),
    [
        # Rewards 1, 2 | 3; values 10, 20, 30 and 40, 50 after the ends; lambda 1.
        (False, [1 + 0.5 * (2 + 0.5 * 40), 2 + 0.5 * 40, 3 + 0.5 * 50]),
        (True, [1 + 0.5 * 2, 2, 3 + 0.5 * 50]),
    ],
)
def test_returns_by_hand(episodic: bool, expected: list[float]) -> None:
    steps = dict(
        obs=np.float32([[10], [20], [30]]),
        next_obs=np.float32([[20], [40], [50]]),
        intrinsic_reward=np.float32([1, 2, 3]),
    )
    end, over = np.array([False, True, True]), np.array([False, True, False])
    advantage, returns = critic(episodic=episodic).advantages(steps, end, over, 1.0)
    assert returns.tolist() == expected
    assert advantage.tolist() == [r - v for r, v in zip(expected, (10, 20, 30), strict=True)]


def test_ppo_prefers_the_action_that_is_new() -> None:
    torch.manual_seed(0)
    policy = PPOPolicy(
        dict(
            cuda=False,
            model=dict(obs_shape=1, action_shape=2, encoder_hidden_size_list=[16]),
            intrinsic=dict(weight=1.0),
            learn=dict(batch_size=32, epoch_per_collect=4, learning_rate=0.01),
            collect=dict(n_sample=64),
        )
    )
    rng, obs = np.random.default_rng(0), np.ones((64, 1), np.float32)
    for _ in range(8):
        action = rng.integers(0, 2, 64)
        rows = Rows(
            dict(
                obs=obs,
                next_obs=obs,
                action=action,
                reward=np.zeros(64, np.float32),
                intrinsic_reward=(action == 1).astype(np.float32),
                done=np.ones(64, bool),
                truncated=np.zeros(64, bool),
                log_prob=np.full(64, np.log(0.5), np.float32),
            )
        )
        policy.learn_mode.forward(rows)
    logit = policy._model(torch.ones(1, 1), mode="compute_actor")["logit"][0]
    assert logit[1] > logit[0] + 1
    restored = policy.learn_mode.state_dict()["intrinsic_critic"]
    assert restored["scale"]["count"] == 8 * 64


@pytest.mark.parametrize("bad", [dict(discount_factor=1.5), dict(weight=-1.0)])
def test_bad_settings_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=rf"policy.intrinsic.{next(iter(bad))} = "):
        IntrinsicReturnConfig(**bad)
