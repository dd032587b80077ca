"""Generalised advantage estimation.

Schulman et al. 2016, https://arxiv.org/abs/1506.02438. Equation 16, as a recursion:
A[t] = delta[t] + gamma lambda A[t+1] with delta[t] = r[t] + gamma V(s[t+1]) - V(s[t]).
`discount` is the gamma of the value, zero where the episode terminated; `decay` is gamma lambda,
zero where the next row belongs to another trajectory.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ding.rl_utils.scan import flat_scan, fused, reverse_scan
from ding.rl_utils.td import per_agent


def generalized_advantages(
    reward: Tensor, discount: Tensor, value: Tensor, next_value: Tensor, decay: Tensor
) -> Tensor:
    """(T, B), of columns (T, B)."""
    columns = torch.broadcast_tensors(reward, discount, value, next_value, decay)
    advantage = fused("gae", columns)
    if advantage is not None:
        return advantage
    delta = reward + discount * next_value - value
    return reverse_scan(delta, decay, torch.zeros_like(delta[0]))


def flat_advantages(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    *,
    discount: np.ndarray,
    decay: np.ndarray,
) -> np.ndarray:
    """(n, ...) float32, of trajectories one after the other, each in order of time.

    Values may have an axis of agents. Summed up in double precision, for which `discount` and
    `decay`, (n,) each, are float64.
    """
    reward, discount = per_agent(reward, value), per_agent(discount, value)
    return flat_scan(reward + discount * next_value - value, decay)
