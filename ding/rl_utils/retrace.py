"""Retrace: returns of action values from another policy's actions.

Munos et al. 2016, https://arxiv.org/abs/1606.02647
Wang et al. 2017 (ACER), https://arxiv.org/abs/1611.01224
"""

from __future__ import annotations

import torch
from torch import Tensor

from ding.rl_utils.gae import generalized_advantages


def retrace(
    reward: Tensor, discount: Tensor, q: Tensor, next_value: Tensor, ratio: Tensor, end: Tensor
) -> Tensor:
    """(T, B): Q_ret[t] = r[t] + gamma (V(x[t+1]) + c[t+1] (Q_ret[t+1] - Q(x[t+1], a[t+1]))).

    Equation 5 of ACER, with c = min(1, `ratio`) of the actions taken and their values `q`. After
    `end` and the last row, what follows is `next_value` alone. As a recursion of Q_ret - Q this is
    that of advantages.
    """
    c = ratio.clamp(max=1)
    next_c = torch.cat([c[1:], torch.zeros_like(c[:1])]).masked_fill(end, 0.0)
    return q + generalized_advantages(reward, discount, q, next_value, discount * next_c)
