"""Façades of the advantage actor-critic.

Letters in shapes: B batch, A actions (or dimensions of the action). `weight` None means ones.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ding.rl_utils.a2c import actor_critic_losses
from ding.rl_utils.established.ppo import MuSigma, gaussian_log_prob_entropy
from ding.torch_utils.distribution import categorical_log_prob_entropy


class a2c_data(NamedTuple):  # noqa: N801 (established name)
    """`logit` (B, A), continuous `{'mu': (B, A), 'sigma': (B, A)}`; everything else (B,)."""

    logit: Tensor | MuSigma
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
    logit, action, value, adv, return_, weight = data
    assert isinstance(logit, Tensor)
    log_prob, entropy = categorical_log_prob_entropy(logit, action)
    return a2c_loss(*actor_critic_losses(log_prob, entropy, adv, value, return_, weight))


def a2c_error_continuous(data: a2c_data) -> a2c_loss:
    """`a2c_error` of a diagonal Gaussian policy."""
    logit, action, value, adv, return_, weight = data
    log_prob, entropy = gaussian_log_prob_entropy(logit, action)
    return a2c_loss(*actor_critic_losses(log_prob, entropy, adv, value, return_, weight))
