"""Losses of whole distributions of returns: C51, QR-DQN, IQN and FQF.

Bellemare et al. 2017 (C51), https://arxiv.org/abs/1707.06887
Dabney et al. 2018 (QR-DQN), https://arxiv.org/abs/1710.10044
Dabney et al. 2018 (IQN), https://arxiv.org/abs/1806.06923
Yang et al. 2019 (FQF), https://arxiv.org/abs/1911.02140

Quantiles of the target are `td_target(reward, discount, next_quantiles)`. Targets carry no
gradient. Letters in shapes: B batch, K atoms, N and M quantiles of the network and of the target.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ding.rl_utils.scan import KERNELS, PAIRS, kernels, readable
from ding.rl_utils.td import td_target


def categorical_target(
    reward: Tensor, discount: Tensor, next_p: Tensor, v_min: float, v_max: float
) -> Tensor:
    """(B, K): the distribution of r + gamma Z(s', a'), projected onto the atoms of `next_p`.

    Algorithm 1 of C51: atoms z_i from `v_min` to `v_max` move to T z_j = r + gamma z_j.
    """
    z = torch.linspace(v_min, v_max, next_p.shape[-1], dtype=next_p.dtype, device=next_p.device)
    return categorical_projection(
        next_p.detach(), td_target(reward, discount, z.expand_as(next_p)), v_min, v_max
    )


def categorical_projection(p: Tensor, atoms: Tensor, v_min: float, v_max: float) -> Tensor:
    """Probabilities `p` (..., K) of `atoms` (..., K), moved to the K even atoms in [v_min, v_max].

    Equation 7 of C51: sum_j [1 - |[T z_j] - z_i| / dz]_0^1 p_j, with [T z_j] cut off at the bounds.
    What lies between two atoms is shared out by distance.
    """
    n_atom = p.shape[-1]
    b = (atoms.expand_as(p).clamp(v_min, v_max) - v_min) * ((n_atom - 1) / (v_max - v_min))
    lower = b.floor().clamp(0, n_atom - 1)
    fraction, below = b - lower, lower.long()
    above = (below + 1).clamp_max(n_atom - 1)
    projected = torch.zeros_like(p).scatter_add(-1, below, p * (1 - fraction))
    return projected.scatter_add(-1, above, p * fraction)


def cross_entropy(log_p: Tensor, target: Tensor) -> Tensor:
    """(..., K) each -> (...): -sum_i m_i log p_i(s, a), the loss of C51's algorithm 1."""
    return -(target * log_p).sum(dim=-1)


def log_of(p: Tensor) -> Tensor:
    """Log-probabilities where a network gives only `p`.

    A probability that float32 has rounded to zero costs much, but not infinitely much, and has no
    gradient: `log_softmax` of the network's own logits always has one.
    """
    return p.clamp_min(torch.finfo(p.dtype).tiny).log()


def quantile_huber(q: Tensor, target: Tensor, tau: Tensor, kappa: float = 1.0) -> Tensor:
    """(B,): sum_i mean_j rho_tau_i(target_j - q_i) of quantiles `q` (B, N) at `tau` (B or 1, N).

    rho_tau(u) = |tau - 1{u < 0}| L_kappa(u) / kappa with the Huber loss L_kappa, against all of
    `target` (B, M): equation 10 of QR-DQN, equation 3 of IQN (which divides by kappa).
    """
    target, tau = target.detach(), tau.detach().expand_as(q)
    if kernels(q.numel() * target.shape[-1], PAIRS) is not None and readable((q, target, tau)):
        return cast(Any, _QuantileHuber).apply(q, target, tau, kappa)
    u = target.unsqueeze(1) - q.unsqueeze(2)
    size = u.abs()
    huber = torch.where(size <= kappa, 0.5 * u.square(), kappa * (size - 0.5 * kappa))
    return (_side(tau, u) * huber).sum(dim=1).mean(dim=-1) / kappa


def _side(tau: Tensor, u: Tensor) -> Tensor:
    """|tau - 1{u < 0}|."""
    return (tau.unsqueeze(2) - (u.detach() < 0).to(u.dtype)).abs()


class _QuantileHuber(torch.autograd.Function):
    """The kernel finds the slope together with the loss."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, target: Tensor, tau: Tensor, kappa: float) -> Tensor:
        columns = (np.ascontiguousarray(x.detach().numpy()) for x in (q, target, tau))
        loss, slope = import_module(KERNELS).quantile_huber(*columns, np.float32(kappa))
        ctx.save_for_backward(torch.from_numpy(slope), q, target, tau)
        ctx.kappa = kappa
        return torch.from_numpy(loss)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        slope, q, target, tau = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative is wanted: find the slope again, by what torch can follow.
            u = target.unsqueeze(1) - q.unsqueeze(2)
            slope = -(_side(tau, u) * u.clamp(-ctx.kappa, ctx.kappa)).mean(dim=-1) / ctx.kappa
        return grads[0].unsqueeze(-1) * slope, None, None, None


def fraction_loss(q_tau: Tensor, q_tau_hat: Tensor, tau: Tensor) -> Tensor:
    """Mean loss whose gradient by the fractions `tau` is that of the 1-Wasserstein error of FQF.

    Proposition 1: dW1/dtau_i = 2 F^-1(tau_i) - F^-1(tau_hat_i) - F^-1(tau_hat_(i-1)), of `q_tau`
    (B, N - 1) at the inner fractions and `q_tau_hat` (B, N) half-way between those of `tau`
    (B, N + 1), from 0 to 1. Signs are turned where the predicted quantiles are not in order.
    """
    with torch.no_grad():
        left = torch.cat([q_tau_hat[:, :1], q_tau[:, :-1]], dim=1)
        right = torch.cat([q_tau[:, 1:], q_tau_hat[:, -1:]], dim=1)
        rise, fall = q_tau - q_tau_hat[:, :-1], q_tau - q_tau_hat[:, 1:]
        slope = torch.where(q_tau > left, rise, -rise) + torch.where(q_tau < right, fall, -fall)
    return (slope * tau[:, 1:-1]).sum(dim=1).mean()
