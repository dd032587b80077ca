"""Façades of heterogeneous-agent PPO, https://arxiv.org/abs/2109.11251.

Agents are updated one after the other: `factor` (B, 1) is the product of the ratios of those that
had their turn. The rest is PPO; shapes and meanings are those of `ppo.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ding.rl_utils.established.ppo import (
    Action,
    MuSigma,
    gaussian_log_prob_entropy,
    losses,
    policy_losses,
    ppo_info,
    ppo_loss,
    ppo_policy_loss,
    ppo_value_data,
    ppo_value_error,
)
from ding.rl_utils.ppo import Logit, log_prob_entropy

happo_value_data = ppo_value_data
happo_loss = ppo_loss
happo_policy_loss = ppo_policy_loss
happo_info = ppo_info
happo_value_error = ppo_value_error


class happo_data(NamedTuple):  # noqa: N801 (established name)
    """Logits, or `{'mu', 'sigma'}` of a continuous policy."""

    logit_new: Logit | MuSigma
    logit_old: Logit | MuSigma
    action: Action
    value_new: Tensor
    value_old: Tensor
    adv: Tensor
    return_: Tensor
    weight: Tensor | None
    factor: Tensor


class happo_policy_data(NamedTuple):  # noqa: N801 (established name)
    logit_new: Logit | MuSigma
    logit_old: Logit | MuSigma
    action: Action
    adv: Tensor
    weight: Tensor | None
    factor: Tensor


def happo_error(
    data: happo_data,
    clip_ratio: float = 0.2,
    use_value_clip: bool = True,
    dual_clip: float | None = None,
) -> tuple[ppo_loss, ppo_info]:
    """Losses of policy, value and entropy (mean of the entropy, to be maximised)."""
    return losses(data, log_prob_entropy, (clip_ratio, dual_clip), use_value_clip)


def happo_error_continuous(
    data: happo_data,
    clip_ratio: float = 0.2,
    use_value_clip: bool = True,
    dual_clip: float | None = None,
) -> tuple[ppo_loss, ppo_info]:
    """`happo_error` of a diagonal Gaussian policy."""
    return losses(data, gaussian_log_prob_entropy, (clip_ratio, dual_clip), use_value_clip)


def happo_policy_error(
    data: happo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    return policy_losses(data, log_prob_entropy, (clip_ratio, dual_clip))


def happo_policy_error_continuous(
    data: happo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    return policy_losses(data, gaussian_log_prob_entropy, (clip_ratio, dual_clip))
