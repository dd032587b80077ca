"""Upgoing policy update of AlphaStar, https://www.nature.com/articles/s41586-019-1724-z.

Letters in shapes: T time, B batch, A actions, S parts of an action.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ding.rl_utils.scan import fused, reverse_scan
from ding.torch_utils.distribution import categorical_log_prob


def upgo_returns(rewards: Tensor, bootstrap_values: Tensor) -> Tensor:
    """(T, B): G[t] = r[t] + (G[t+1] if r[t+1] + V(s[t+2]) >= V(s[t+1]) else V(s[t+1])).

    From rewards (T, B) and values (T + 1, B): a trajectory is followed while it does well. The
    paper has no discount; after a terminal state values and rewards must be zero.
    """
    returns = fused("upgo_returns", (rewards, bootstrap_values))
    if returns is not None:
        return returns
    value, following = bootstrap_values[:-1], bootstrap_values[1:]
    well = (rewards + following >= value).to(rewards.dtype)
    # Whether the return of a step goes on into the next one; the last has only the value.
    follow = torch.cat([well[1:], torch.ones_like(well[:1])])
    own = torch.cat([following[:-1], torch.zeros_like(following[:1])])
    return reverse_scan(rewards + own * (1 - follow), follow, following[-1])


def upgo_loss(
    target_output: Tensor,
    rhos: Tensor,
    action: Tensor,
    rewards: Tensor,
    bootstrap_values: Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """Mean policy loss of logits (T, B, A), importance weights (T, B) and actions (T, B).

    Actions of S parts: logits (T, B, S, A), actions (T, B, S), `mask` (T, B, S) of the parts used.
    """
    with torch.no_grad():
        advantage = rhos * (upgo_returns(rewards, bootstrap_values) - bootstrap_values[:-1])
    return -(advantage * tb_cross_entropy(target_output, action, mask)).mean()


def tb_cross_entropy(logit: Tensor, label: Tensor, mask: Tensor | None = None) -> Tensor:
    """(T, B): log-probability of the labels, summed over their parts where they have several."""
    log_prob = categorical_log_prob(logit, label)
    if mask is not None:
        log_prob = log_prob * mask
    return log_prob.flatten(2).sum(dim=-1) if label.ndim > 2 else log_prob
