"""Losses of the advantage actor-critic, Mnih et al. 2016, https://arxiv.org/abs/1602.01783."""

from __future__ import annotations

from torch import Tensor

from ding.rl_utils.td import weighted_mean


def actor_critic_losses(
    log_prob: Tensor,
    entropy: Tensor,
    advantage: Tensor,
    value: Tensor,
    return_: Tensor,
    weight: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Means of -log pi(a|s) A, of (R - V(s))^2 and of the entropy, which is to be maximised.

    Section 4 of the paper, whose A is R - V(s); all columns have one shape.
    """
    policy_loss = -weighted_mean(log_prob * advantage, weight)
    value_loss = weighted_mean((return_ - value).square(), weight)
    return policy_loss, value_loss, weighted_mean(entropy, weight)
