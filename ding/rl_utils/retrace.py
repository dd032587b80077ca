"""Retrace: safe off-policy returns, https://arxiv.org/abs/1606.02647."""

from __future__ import annotations

from torch import Tensor, cat

from ding.rl_utils.scan import fused, reverse_scan


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
    columns = q_values, v_pred, rewards, actions, weights.to(rewards.dtype), ratio
    retraces = fused("q_retraces", columns, len(rewards), (gamma,))
    if retraces is not None:
        return retraces.view(v_pred.shape)
    index = actions.long().unsqueeze(-1)
    q, taken = q_values[:-1].gather(-1, index).squeeze(-1), ratio.gather(-1, index).squeeze(-1)
    value, c, follow = v_pred.squeeze(-1), taken.clamp(max=1), gamma * weights
    # What follows a step, v + c (Q_ret - q), is a recursion of its own.
    ahead = reverse_scan(c * (rewards - q) + value[:-1], c * follow, value[-1])
    retraced = rewards + follow * cat([ahead[1:], value[-1:]])
    return cat([retraced, value[-1:]]).unsqueeze(-1)
