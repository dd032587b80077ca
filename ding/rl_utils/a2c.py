"""Losses of the advantage actor-critic, https://arxiv.org/abs/1602.01783.

Letters in shapes: B batch, A actions (or dimensions of the action). `weight` None means ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from ding.rl_utils.ppo import mean, mu_sigma
from ding.torch_utils.distribution import (
    categorical_log_prob_entropy,
    gaussian_entropy,
    gaussian_log_prob,
)


class a2c_data(NamedTuple):  # noqa: N801 (established name)
    """`logit` (B, A), continuous `{'mu': (B, A), 'sigma': (B, A)}`; everything else (B,)."""

    logit: Any
    action: Tensor
    value: Tensor
    adv: Tensor
    return_: Tensor
    weight: Tensor | None


class a2c_loss(NamedTuple):  # noqa: N801 (established name)
    policy_loss: Tensor
    value_loss: Tensor
    entropy_loss: Tensor


def a2c_error(data: a2c_data) -> a2c_loss:
    """Losses of policy and value, and the mean entropy (to be maximised)."""
    return a2c_losses(data, *categorical_log_prob_entropy(data.logit, data.action))


def a2c_error_continuous(data: a2c_data) -> a2c_loss:
    """`a2c_error` of a diagonal Gaussian policy."""
    mu, sigma = mu_sigma(data.logit)
    log_prob = gaussian_log_prob(mu, sigma, data.action.reshape(mu.shape))
    return a2c_losses(data, log_prob, gaussian_entropy(sigma))


def a2c_losses(data: a2c_data, log_prob: Tensor, entropy: Tensor) -> a2c_loss:
    """`a2c_error` of any policy, given its log-probabilities and entropies (B,)."""
    policy_loss = -mean(log_prob * data.adv, data.weight)
    value_loss = mean((data.return_ - data.value).square(), data.weight)
    return a2c_loss(policy_loss, value_loss, mean(entropy, data.weight))
