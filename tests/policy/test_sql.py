"""Soft Q-learning against a plain computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.policy.sql import SQLPolicy, epsilon_softmax
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from policy.fakes import batch_of
from policy.q_fakes import (
    check_compiled,
    check_known_values,
    check_overfits,
    check_target_is_left_alone,
    shake_target,
    small,
    values,
)


@pytest.mark.parametrize("alpha", [0.05, 2.0])
def test_loss_by_hand(alpha: float) -> None:
    policy = small("sql", learn=dict(alpha=alpha))
    shake_target(policy)
    batch = batch_of("dqn")
    q = values(policy._model, batch["obs"])
    after = values(policy._target.module, batch["next_obs"]).astype(np.float64)
    errors = []
    for i in range(16):
        soft = alpha * np.log(sum(np.exp(x / alpha) for x in after[i]))
        target = batch["reward"][i] + batch["discount"][i] * soft
        errors.append(q[i, batch["action"][i]] - target)
    output = policy.learn_mode.forward(Rows(batch))
    assert float(output["total_loss"]) == pytest.approx(np.square(errors).mean(), rel=1e-4)
    assert output["priority"].numpy() == pytest.approx(np.abs(errors), rel=1e-3, abs=1e-4)


def test_collects_by_its_own_policy() -> None:
    policy = small("sql", learn=dict(alpha=0.5))
    policy._q = lambda obs: {"logit": np.tile(np.float32([0.0, 1.0, -1.0, 0.5]), (len(obs), 1))}
    obs = ByEnv(np.arange(8000), np.zeros((8000, 3), np.float32))
    pi = np.exp(np.array([0.0, 2.0, -2.0, 1.0]))
    pi /= pi.sum()
    for eps in (0.0, 0.4):
        action = stacked_of(policy.collect_mode.forward(obs, eps=eps))[1]["action"]
        wanted = (1 - eps) * pi + eps / 4
        assert np.bincount(action, minlength=4) / 8000 == pytest.approx(wanted, abs=0.02)
    assert (stacked_of(policy.eval_mode.forward(obs))[1]["action"] == 1).all()


def test_epsilon_softmax_knows_certainty() -> None:
    logit = np.tile(np.float32([0.0, 1000.0]), (100, 1))
    assert (epsilon_softmax(logit, 0.0, np.random.default_rng(0)) == 1).all()


def test_learns_one_batch_and_leaves_the_target_alone() -> None:
    check_overfits(small("sql", learn=dict(learning_rate=0.01)))
    check_target_is_left_alone(small("sql"))


@pytest.mark.parametrize("terminates", [True, False])
def test_time_limits(terminates: bool) -> None:
    learn = dict(learning_rate=0.01, target_update_freq=10, alpha=1e-3)
    check_known_values(SQLPolicy, terminates, learn)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    check_compiled("sql")


@pytest.mark.parametrize(
    ("learn", "pattern"),
    [(dict(alpha=0.0), "policy.learn.alpha = 0"), (dict(double_q=True), "double_q = True")],
)
def test_bad_settings(learn: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        small("sql", learn=learn)
