from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from policy.distributional import N_QUANTILE, arrays, batch_for_loss, policy_of, quantile_huber
from policy.fakes import batch_of


@pytest.mark.parametrize("double_q", [True, False])
@pytest.mark.parametrize("kappa", [1.0, 0.25])
def test_loss_by_hand(double_q: bool, kappa: float) -> None:
    policy = policy_of("iqn", learn=dict(double_q=double_q, kappa=kappa))
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    batch = batch_for_loss(policy, weight=weight)
    even = ((torch.arange(N_QUANTILE) + 0.5) / N_QUANTILE).expand(16, -1)
    picker = policy._model if double_q else policy._target.module
    best = arrays(picker(batch["next_obs"], tau=even))["logit"].argmax(axis=1)
    now = arrays(policy._model(batch["obs"], tau=batch["tau"]))["q"]  # (N, B, A)
    value = arrays(policy._target.module(batch["next_obs"], tau=batch["next_tau"]))["q"]
    errors = []
    for i in range(16):
        goal = float(batch["reward"][i]) + float(batch["discount"][i]) * value[:, i, best[i]]
        tau = batch["tau"][i].numpy()
        errors.append(quantile_huber(now[:, i, int(batch["action"][i])], goal, tau, kappa))
    loss, metrics = policy._loss(batch)
    assert float(loss.detach()) == pytest.approx((weight * errors).mean(), rel=1e-4)
    assert metrics["priority"].numpy() == pytest.approx(np.array(errors), rel=1e-4)


def test_fractions_are_drawn_outside_of_the_loss() -> None:
    policy = policy_of("iqn")
    batch = policy._batch(Rows(batch_of("dqn")))
    assert batch["tau"].shape == batch["next_tau"].shape == (16, N_QUANTILE)
    assert not torch.equal(batch["tau"], batch["next_tau"])
    state = torch.get_rng_state()
    losses = [float(policy._loss(batch)[0].detach()) for _ in range(2)]
    assert losses[0] == losses[1]
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(policy._batch(Rows(batch_of("dqn")))["tau"], batch["tau"])


def test_acting_draws_nothing() -> None:
    policy = policy_of("iqn")
    obs = ByEnv(np.arange(16), batch_of("dqn")["obs"])
    state = torch.get_rng_state()
    for mode in (policy.collect_mode, policy.eval_mode):
        first, again = (stacked_of(mode.forward(obs))[1]["action"] for _ in range(2))
        assert np.array_equal(first, again)
    assert torch.equal(torch.get_rng_state(), state)
    assert policy._model.training


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(model=dict(num_quantiles=0)), r"policy.model.num_quantiles = 0"),
        (dict(learn=dict(kappa=0.0)), r"policy.learn.kappa = 0.0"),
    ],
)
def test_bad_settings(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        policy_of("iqn", **cfg)
