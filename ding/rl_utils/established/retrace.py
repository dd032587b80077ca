"""Façade of Retrace."""

from __future__ import annotations

import torch
from torch import Tensor, cat

from ding.rl_utils.retrace import retrace
from ding.rl_utils.td import at_action


def compute_q_retraces(
    q_values: Tensor,
    v_pred: Tensor,
    rewards: Tensor,
    actions: Tensor,
    weights: Tensor,
    ratio: Tensor,
    gamma: float = 0.9,
) -> Tensor:
    """(T + 1, B, 1), the last being the last value, with traces cut at one.

    `q_values` (T + 1, B, A), `v_pred` (T + 1, B, 1), `rewards` and `actions` (T, B), `weights`
    (T, B) zero where the episode terminated, `ratio` (T, B, A) of target to behaviour policy.
    """
    q, taken = at_action(q_values[:-1], actions), at_action(ratio, actions)
    discount, never = gamma * weights.to(rewards.dtype), torch.zeros_like(rewards, dtype=torch.bool)
    retraces = retrace(rewards, discount, q, v_pred[1:].squeeze(-1), taken, never)
    return cat([retraces.unsqueeze(-1), v_pred[-1:]])
