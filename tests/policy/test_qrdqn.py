from __future__ import annotations

import numpy as np
import pytest

from ding.utils.errors import ConfigError
from policy.distributional import N_QUANTILE, arrays, batch_for_loss, policy_of, quantile_huber


@pytest.mark.parametrize("double_q", [True, False])
@pytest.mark.parametrize("kappa", [1.0, 0.25])
def test_loss_by_hand(double_q: bool, kappa: float) -> None:
    policy = policy_of("qrdqn", learn=dict(double_q=double_q, kappa=kappa))
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    batch = batch_for_loss(policy, weight=weight)
    now = arrays(policy._model(batch["obs"]))
    picker = arrays(policy._model(batch["next_obs"]))
    value = arrays(policy._target.module(batch["next_obs"]))
    tau = (np.arange(N_QUANTILE) + 0.5) / N_QUANTILE
    errors = []
    for i in range(16):
        best = int(np.argmax((picker if double_q else value)["logit"][i]))
        goal = float(batch["reward"][i]) + float(batch["discount"][i]) * value["q"][i, best]
        errors.append(quantile_huber(now["q"][i, int(batch["action"][i])], goal, tau, kappa))
    loss, metrics = policy._loss(batch)
    assert float(loss.detach()) == pytest.approx((weight * errors).mean(), rel=1e-4)
    assert metrics["priority"].numpy() == pytest.approx(np.array(errors), rel=1e-4)


def test_quantiles_of_a_coin_are_learned() -> None:
    """Rewards 0 and 2 with equal chance, no future: the lower quantiles are 0, the upper 2."""
    policy = policy_of("qrdqn", model=dict(num_quantiles=4), learn=dict(learning_rate=0.01))
    batch = batch_for_loss(policy)
    batch["obs"][:] = 1.0
    batch["action"][:] = 2
    batch["discount"][:] = 0.0
    batch["reward"][:8], batch["reward"][8:] = 0.0, 2.0
    for _ in range(600):
        policy._step(batch)
    q = arrays(policy._model(batch["obs"][:1]))["q"][0, 2]
    # The Huber loss draws quantiles a little to the middle.
    assert q == pytest.approx([0.0, 0.0, 2.0, 2.0], abs=0.6)
    assert q[0] < q[1] + 0.1 < q[2] < q[3] + 0.1


def test_bad_settings() -> None:
    with pytest.raises(ConfigError, match=r"policy.model.num_quantiles = 0: must be at least 1"):
        policy_of("qrdqn", model=dict(num_quantiles=0))
