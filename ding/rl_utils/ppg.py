"""Auxiliary phase of phasic policy gradient, https://arxiv.org/abs/2009.04416."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ding.rl_utils.ppo import ppo_value_data, ppo_value_error


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
    value = ppo_value_data(data.value_new, data.value_old, data.return_, data.weight)
    log_old = torch.log_softmax(data.logit_old.detach(), dim=-1)
    log_new = torch.log_softmax(data.logit_new, dim=-1)
    divergence = (log_old.exp() * (log_old - log_new)).sum(dim=-1)
    return ppg_joint_loss(ppo_value_error(value, clip_ratio, use_value_clip), divergence.mean())
