from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from policy.distributional import N_QUANTILE, arrays, batch_for_loss, policy_of, quantile_huber
from policy.fakes import batch_of


@pytest.mark.parametrize("double_q", [True, False])
def test_quantile_loss_by_hand(double_q: bool) -> None:
    policy = policy_of("fqf", learn=dict(double_q=double_q, kappa=0.5))
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    batch = batch_for_loss(policy, weight=weight)
    now = arrays(policy._model(batch["obs"]))
    picker = arrays(policy._model(batch["next_obs"]))
    value = arrays(policy._target.module(batch["next_obs"]))
    errors = []
    for i in range(16):
        best = int(np.argmax((picker if double_q else value)["logit"][i]))
        goal = float(batch["reward"][i]) + float(batch["discount"][i]) * value["q"][i, :, best]
        q, tau = now["q"][i, :, int(batch["action"][i])], now["quantiles_hats"][i]
        errors.append(quantile_huber(q, goal, tau, 0.5))
    loss, metrics = policy._loss(batch)
    assert float(loss.detach()) == pytest.approx((weight * errors).mean(), rel=1e-4)
    assert metrics["priority"].numpy() == pytest.approx(np.array(errors), rel=1e-4)


def distance(quantile: Any, tau: np.ndarray) -> float:
    """1-Wasserstein distance of a distribution to the steps at `tau`, by a fine sum."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    middle = (tau[1:] + tau[:-1]) / 2
    step = np.clip(np.searchsorted(tau, grid, side="right") - 1, 0, len(middle) - 1)
    return float(np.abs(quantile(grid) - quantile(middle[step])).mean())


def test_fraction_loss_has_the_slope_of_the_distance() -> None:
    """With a known quantile function for the network of values."""
    policy = policy_of("fqf")
    batch = batch_for_loss(policy)
    output = policy._model(batch["obs"])
    quantile = lambda tau: 3.0 * tau**2  # noqa: E731
    tau = output["quantiles"].detach()
    leaf = tau.clone().requires_grad_()
    columns = lambda t: quantile(t).unsqueeze(-1).expand(-1, -1, 4)  # noqa: E731
    fake = {
        **output,
        "quantiles": leaf,
        "q": columns(output["quantiles_hats"]),
        "q_tau_i": columns(tau[:, 1:-1]),
    }
    policy._model = lambda obs: fake
    loss, _ = policy._fraction_loss(batch)
    slope = torch.autograd.grad(loss, leaf)[0][0].numpy() * 16
    first = tau[0].double().numpy()
    for i in range(1, N_QUANTILE):
        up, down = first.copy(), first.copy()
        up[i] += 0.01
        down[i] -= 0.01
        wanted = (distance(quantile, up) - distance(quantile, down)) / 0.02
        assert slope[i] == pytest.approx(wanted, abs=2e-3)


def test_each_loss_moves_its_own_network() -> None:
    def moved(**rates: float) -> dict[str, bool]:
        policy = policy_of("fqf", learn=rates)
        before = {n: p.detach().clone() for n, p in policy._model.named_parameters()}
        policy.learn_mode.forward(Rows(batch_of("dqn")))
        after = dict(policy._model.named_parameters())
        return {n: not torch.allclose(before[n], after[n], atol=1e-7) for n in before}

    values = moved(learning_rate_quantile=1e-2, learning_rate_fraction=1e-12)
    fractions = moved(learning_rate_quantile=1e-12, learning_rate_fraction=1e-2)
    for name in values:
        of_proposal = "quantiles_proposal" in name
        assert values[name] is not of_proposal, name
        assert fractions[name] is of_proposal, name


def test_entropy_keeps_fractions_apart() -> None:
    batch = Rows(batch_of("dqn"))
    entropy = []
    for ent_coef in (0.0, 10.0):
        policy = policy_of("fqf", learn=dict(learning_rate_fraction=0.01, ent_coef=ent_coef))
        for _ in range(50):
            output = policy.learn_mode.forward(batch)
        entropy.append(float(output["entropy"]))
    assert entropy[0] < entropy[1] <= np.log(N_QUANTILE) + 1e-5


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(model=dict(num_quantiles=1)), r"policy.model.num_quantiles = 1"),
        (dict(learn=dict(kappa=-1.0)), r"policy.learn.kappa = -1.0"),
        (dict(learn=dict(ent_coef=-1.0)), r"policy.learn.ent_coef = -1.0"),
        (dict(learn=dict(learning_rate=0.01)), r"learning_rate = 0.01 .*learning_rate_quantile"),
        (dict(learn=dict(learning_rate_fraction=0.0)), r"learning_rate_fraction = 0.0"),
    ],
)
def test_bad_settings(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        policy_of("fqf", **cfg)
