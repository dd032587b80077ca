"""Façade of the auxiliary phase of phasic policy gradient, https://arxiv.org/abs/2009.04416."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ding.rl_utils.ppo import value_loss
from ding.torch_utils.distribution import categorical_kl


class ppg_data(NamedTuple):  # noqa: N801 (established name)
    """Logits (B, A); everything else (B,)."""

    logit_new: Tensor
    logit_old: Tensor
    action: Tensor
    value_new: Tensor
    value_old: Tensor
    return_: Tensor
    weight: Tensor | None


class ppg_joint_loss(NamedTuple):  # noqa: N801 (established name)
    auxiliary_loss: Tensor
    behavioral_cloning_loss: Tensor


def ppg_joint_error(
    data: ppg_data, clip_ratio: float = 0.2, use_value_clip: bool = True
) -> ppg_joint_loss:
    """Loss of the policy network's value, and mean KL of its policy from the old one."""
    clip = clip_ratio if use_value_clip else None
    auxiliary = value_loss(data.value_new, data.value_old, data.return_, clip, data.weight)
    divergence = categorical_kl(data.logit_old.detach(), data.logit_new)
    return ppg_joint_loss(auxiliary, divergence.mean())
