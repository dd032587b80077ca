"""Munchausen DQN against a plain computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.policy.mdqn import MDQNPolicy
from ding.utils.batch import Rows
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


def reference(policy: Any, batch: dict[str, Any], tau: float, alpha: float) -> np.ndarray:
    """Squared errors (B,), one sample after the other, by the formulas of the paper."""
    q = values(policy._model, batch["obs"])
    before = values(policy._target.module, batch["obs"]).astype(np.float64)
    after = values(policy._target.module, batch["next_obs"]).astype(np.float64)
    errors = []
    for i in range(len(q)):
        a = batch["action"][i]
        log_pi = before[i] / tau - np.log(np.exp((before[i] - before[i].max()) / tau).sum())
        log_pi -= before[i].max() / tau
        pi = np.exp(after[i] / tau - after[i].max() / tau)
        pi /= pi.sum()
        soft = sum(p * (x - tau * np.log(p)) for p, x in zip(pi, after[i], strict=True) if p > 0)
        gain = alpha * max(tau * log_pi[a], -1.0)
        target = batch["reward"][i] + gain + batch["discount"][i] * soft
        errors.append((q[i, a] - target) ** 2)
    return np.array(errors)


@pytest.mark.parametrize("tau", [0.03, 1.0])
def test_loss_by_hand(tau: float) -> None:
    policy = small("mdqn", entropy_tau=tau, m_alpha=0.7)
    shake_target(policy)
    batch = batch_of("dqn")
    wanted = reference(policy, batch, tau, 0.7)
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    output = policy.learn_mode.forward(Rows({**batch, "weight": weight}))
    assert float(output["total_loss"]) == pytest.approx((weight * wanted).mean(), rel=1e-4)
    assert output["priority"].numpy() == pytest.approx(np.sqrt(wanted), rel=1e-3, abs=1e-4)
    assert set(policy.learn_mode.monitor_vars()) <= set(output)


def test_learns_one_batch_and_leaves_the_target_alone() -> None:
    check_overfits(small("mdqn", m_alpha=0.0, learn=dict(learning_rate=0.01)))
    check_target_is_left_alone(small("mdqn"))


@pytest.mark.parametrize("terminates", [True, False])
def test_time_limits(terminates: bool) -> None:
    learn = dict(learning_rate=0.01, target_update_freq=10)
    check_known_values(MDQNPolicy, terminates, learn, entropy_tau=0.01)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    check_compiled("mdqn")


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(nstep=3), "policy.nstep = 3"),
        (dict(entropy_tau=0.0), "policy.entropy_tau = 0"),
        (dict(m_alpha=1.5), "policy.m_alpha = 1.5"),
        (dict(learn=dict(double_q=True)), "policy.learn.double_q = True"),
    ],
)
def test_bad_settings(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        small("mdqn", **cfg)
