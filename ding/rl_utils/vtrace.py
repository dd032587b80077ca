"""V-trace, the off-policy correction of IMPALA.

Espeholt et al. 2018, https://arxiv.org/abs/1802.01561. Letters in shapes: T time, B batch.
`discount` is gamma, zero where the episode terminated. Importance weights are clipped already.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ding.rl_utils.scan import fused, reverse_scan


def vtrace_returns(
    rho: Tensor, c: Tensor, reward: Tensor, discount: Tensor, value: Tensor, next_value: Tensor
) -> Tensor:
    """(T, B): v[s] = V(x[s]) + delta[s] + gamma c[s] (v[s+1] - V(x[s+1])).

    Equation 1 in the recursive form of remark 1, with delta[s] = rho[s] (r[s] + gamma V(x[s+1]) -
    V(x[s])). `c` is zero where the next row belongs to another trajectory (and at the last one it
    does not matter): the value after such a step is in `next_value` all the same.
    """
    columns = torch.broadcast_tensors(rho, c, reward, discount, value, next_value)
    returns = fused("vtrace_returns", columns)
    if returns is not None:
        return returns
    delta = rho * (reward + discount * next_value - value)
    return value + reverse_scan(delta, discount * c, torch.zeros_like(delta[0]))


def vtrace_advantage(
    clipped_pg_rhos: Tensor,
    reward: Tensor,
    return_: Tensor,
    bootstrap_values: Tensor,
    gamma: float | Tensor,
) -> Tensor:
    """(T, B): rho[s] (r[s] + gamma v[s+1] - V(x[s])), by which section 4.2 weighs log pi(a|x).

    `return_` is v of the next step, `bootstrap_values` V of this one; `gamma` may be (T, B).
    """
    return clipped_pg_rhos * (reward + gamma * return_ - bootstrap_values)
