"""Façades of heterogeneous-agent PPO, https://arxiv.org/abs/2109.11251.

Agents are updated one after the other: `factor` (B, 1) is the product of the ratios of those that
had their turn. The rest is PPO; shapes and meanings are those of `ppo.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ding.rl_utils.established.ppo import (
    gaussian_log_prob_entropy,
    policy_error,
    ppo_info,
    ppo_loss,
    ppo_policy_loss,
    ppo_value_data,
    ppo_value_error,
)
from ding.rl_utils.ppo import log_prob_entropy

happo_value_data = ppo_value_data
happo_loss = ppo_loss
happo_policy_loss = ppo_policy_loss
happo_info = ppo_info
happo_value_error = ppo_value_error


class happo_data(NamedTuple):  # noqa: N801 (established name)
    """Logits, or `{'mu', 'sigma'}` of a continuous policy."""

    logit_new: Any
    logit_old: Any
    action: Any
    value_new: Tensor
    value_old: Tensor
    adv: Tensor
    return_: Tensor
    weight: Tensor | None
    factor: Tensor


class happo_policy_data(NamedTuple):  # noqa: N801 (established name)
    logit_new: Any
    logit_old: Any
    action: Any
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
    policy, info = happo_policy_error(_policy_part(data), clip_ratio, dual_clip)
    return ppo_loss(policy[0], _value_loss(data, clip_ratio, use_value_clip), policy[1]), info


def happo_error_continuous(
    data: happo_data,
    clip_ratio: float = 0.2,
    use_value_clip: bool = True,
    dual_clip: float | None = None,
) -> tuple[ppo_loss, ppo_info]:
    """`happo_error` of a diagonal Gaussian policy."""
    policy, info = happo_policy_error_continuous(_policy_part(data), clip_ratio, dual_clip)
    return ppo_loss(policy[0], _value_loss(data, clip_ratio, use_value_clip), policy[1]), info


def happo_policy_error(
    data: happo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    return _policy_error(data, log_prob_entropy, (clip_ratio, dual_clip))


def happo_policy_error_continuous(
    data: happo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    return _policy_error(data, gaussian_log_prob_entropy, (clip_ratio, dual_clip))


def _policy_error(
    data: happo_policy_data,
    evaluate: Callable[[Any, Any], tuple[Tensor, Tensor]],
    clips: tuple[float, float | None],
) -> tuple[ppo_policy_loss, ppo_info]:
    new = evaluate(data.logit_new, data.action)
    with torch.no_grad():
        old, _ = evaluate(data.logit_old, data.action)
    factor = data.factor.reshape(data.adv.shape)
    old = old.reshape(new[0].shape)
    return policy_error(new, old, data.adv, data.weight, clips, factor)


def _policy_part(data: happo_data) -> happo_policy_data:
    new, old, action, _, _, adv, _, weight, factor = data
    return happo_policy_data(new, old, action, adv, weight, factor)


def _value_loss(data: happo_data, clip_ratio: float, use_value_clip: bool) -> Tensor:
    value = ppo_value_data(data.value_new, data.value_old, data.return_, data.weight)
    return ppo_value_error(value, clip_ratio, use_value_clip)
