"""Temporal-difference errors of whole distributions of returns.

Letters in shapes: T the n steps, B batch, A actions, K atoms, N and M quantiles of the network and
of the target. `weight` None means ones. Targets carry no gradient.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from ding.rl_utils.scan import KERNELS, PAIRS, kernels, readable
from ding.rl_utils.td import (
    Gamma,
    bootstrapped,
    continues,
    discounted_reward,
    nstep_return_data,
    spread,
    weighted,
)


class dist_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    """Probabilities (B, A, K); everything else (B,). With agents: (B, agents, A, K) and so on."""

    dist: Tensor
    next_dist: Tensor
    act: Tensor
    next_act: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None


class dist_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    """As `dist_1step_td_data`, but rewards are (T, B)."""

    dist: Tensor
    next_n_dist: Tensor
    act: Tensor
    next_n_act: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | float | None


def dist_1step_td_error(
    data: dist_1step_td_data, gamma: float, v_min: float, v_max: float, n_atom: int
) -> Tensor:
    """Mean weighted cross entropy of C51, https://arxiv.org/abs/1707.06887."""
    steps = dist_nstep_td_data(*data)._replace(reward=data.reward.unsqueeze(0))
    return dist_nstep_td_error(steps, gamma, v_min, v_max, n_atom)[0]


def dist_nstep_td_error(
    data: dist_nstep_td_data,
    gamma: float,
    v_min: float,
    v_max: float,
    n_atom: int,
    nstep: int = 1,
    value_gamma: float | Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean weighted cross entropy of C51 after `nstep` steps, and the cross entropy per sample."""
    dist, next_dist = _at(data.dist, data.act), _at(data.next_n_dist, data.next_n_act)
    reward = spread(discounted_reward(data.reward, gamma, nstep), next_dist)
    support = torch.linspace(v_min, v_max, n_atom, dtype=dist.dtype, device=dist.device)
    discount = gamma**nstep if value_gamma is None else value_gamma
    discount = spread(torch.as_tensor(discount, dtype=dist.dtype, device=dist.device), next_dist)
    atoms = reward + discount * continues(data.done, next_dist) * support
    target = categorical_projection(next_dist.detach(), atoms, v_min, v_max)
    # A probability that has become zero costs much, but not infinitely much.
    log_p = dist.clamp_min(torch.finfo(dist.dtype).tiny).log()
    loss = -(target * log_p).sum(dim=-1)
    if isinstance(data.weight, float):
        return (loss * data.weight).mean(), loss
    return weighted(loss, data.weight), loss


def categorical_projection(p: Tensor, atoms: Tensor, v_min: float, v_max: float) -> Tensor:
    """Probabilities `p` (..., K) of `atoms` (..., K), moved to the K even atoms in [v_min, v_max].

    What lies between two of them is shared out by distance.
    """
    n_atom = p.shape[-1]
    place = (atoms.expand_as(p).clamp(v_min, v_max) - v_min) * ((n_atom - 1) / (v_max - v_min))
    lower = place.floor().clamp(0, n_atom - 1)
    fraction, below = place - lower, lower.long()
    above = (below + 1).clamp_max(n_atom - 1)
    projected = torch.zeros_like(p).scatter_add(-1, below, p * (1 - fraction))
    return projected.scatter_add(-1, above, p * fraction)


def _at(x: Tensor, action: Tensor) -> Tensor:
    """(B, A, K), (B,) -> (B, K)."""
    index = action.long()[..., None, None].expand(*action.shape, 1, x.shape[-1])
    return x.gather(-2, index).squeeze(-2)


class qrdqn_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    """`q` (B, A, N), `next_n_q` (B, A, M), `reward` (T, B), `tau` (N,), (1, N, 1) or (B, N)."""

    q: Tensor
    next_n_q: Tensor
    action: Tensor
    next_n_action: Tensor
    reward: Tensor
    done: Tensor
    tau: Tensor
    weight: Tensor | None


def qrdqn_nstep_td_error(
    data: qrdqn_nstep_td_data,
    gamma: Gamma,
    nstep: int = 1,
    value_gamma: float | Tensor | None = None,
    kappa: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of QR-DQN, https://arxiv.org/abs/1710.10044."""
    q, next_q = _at(data.q, data.action), _at(data.next_n_q, data.next_n_action)
    steps = nstep_return_data(data.reward, next_q, data.done)
    target = bootstrapped(steps, gamma, nstep, value_gamma=value_gamma)
    loss = quantile_huber(q, target, data.tau.reshape(-1, q.shape[-1]), kappa)
    return weighted(loss, data.weight), loss


class iqn_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    """`q` (N, B, A), `next_n_q` (M, B, A), `reward` (T, B), `replay_quantiles` (N * B, 1)."""

    q: Tensor
    next_n_q: Tensor
    action: Tensor
    next_n_action: Tensor
    reward: Tensor
    done: Tensor
    replay_quantiles: Tensor
    weight: Tensor | None


def iqn_nstep_td_error(
    data: iqn_nstep_td_data,
    gamma: Gamma,
    nstep: int = 1,
    kappa: float = 1.0,
    value_gamma: float | Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of IQN, https://arxiv.org/abs/1806.06923."""
    q, next_q = data.q.transpose(0, 1), data.next_n_q.transpose(0, 1)
    tau = data.replay_quantiles.reshape(data.q.shape[:2]).t()
    by_fraction = fqf_nstep_td_data(
        q, next_q, data.action, data.next_n_action, data.reward, data.done, tau, data.weight
    )
    return fqf_nstep_td_error(by_fraction, gamma, nstep, kappa, value_gamma)


class fqf_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    """`q` (B, N, A), `next_n_q` (B, M, A), `reward` (T, B), `quantiles_hats` (B, N)."""

    q: Tensor
    next_n_q: Tensor
    action: Tensor
    next_n_action: Tensor
    reward: Tensor
    done: Tensor
    quantiles_hats: Tensor
    weight: Tensor | None


def fqf_nstep_td_error(
    data: fqf_nstep_td_data,
    gamma: Gamma,
    nstep: int = 1,
    kappa: float = 1.0,
    value_gamma: float | Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of FQF, https://arxiv.org/abs/1911.02140."""
    q = evaluate_quantile_at_action(data.q, data.action).squeeze(-1)
    next_q = evaluate_quantile_at_action(data.next_n_q, data.next_n_action).squeeze(-1)
    steps = nstep_return_data(data.reward, next_q, data.done)
    target = bootstrapped(steps, gamma, nstep, value_gamma=value_gamma)
    loss = quantile_huber(q, target, data.quantiles_hats, kappa)
    return weighted(loss, data.weight), loss


def evaluate_quantile_at_action(q_s: Tensor, actions: Tensor) -> Tensor:
    """(B, N, A), (B,) -> (B, N, 1)."""
    index = actions.long()[:, None, None].expand(-1, q_s.shape[1], 1)
    return q_s.gather(-1, index)


def fqf_calculate_fraction_loss(
    q_tau_i: Tensor, q_value: Tensor, quantiles: Tensor, actions: Tensor
) -> Tensor:
    """Mean loss whose gradient by the fractions is that of the 1-Wasserstein error.

    `q_tau_i` (B, N - 1, A) at the inner fractions, `q_value` (B, N, A) half-way between them,
    `quantiles` (B, N + 1) from 0 to 1. Proposition 1 of https://arxiv.org/abs/1911.02140, with the
    signs turned where the predicted quantiles are not in order.
    """
    with torch.no_grad():
        at = evaluate_quantile_at_action(q_tau_i, actions).squeeze(-1)
        middle = evaluate_quantile_at_action(q_value, actions).squeeze(-1)
        left = torch.cat([middle[:, :1], at[:, :-1]], dim=1)
        right = torch.cat([at[:, 1:], middle[:, -1:]], dim=1)
        rise, fall = at - middle[:, :-1], at - middle[:, 1:]
        slope = torch.where(at > left, rise, -rise) + torch.where(at < right, fall, -fall)
    return (slope * quantiles[:, 1:-1]).sum(dim=1).mean()


def quantile_huber(q: Tensor, target: Tensor, tau: Tensor, kappa: float = 1.0) -> Tensor:
    """(B,): quantiles `q` (B, N) at `tau` (B or 1, N) against all of `target` (B, M).

    Summed over the N, averaged over the M.
    """
    target, tau = target.detach(), tau.detach().expand_as(q)
    if kernels(q.numel() * target.shape[-1], PAIRS) is not None and readable((q, target, tau)):
        return cast(Any, _QuantileHuber).apply(q, target, tau, kappa)
    error = target.unsqueeze(1) - q.unsqueeze(2)
    size = error.abs()
    huber = torch.where(size <= kappa, 0.5 * error.square(), kappa * (size - 0.5 * kappa))
    side = (tau.unsqueeze(2) - (error.detach() < 0).to(q.dtype)).abs()
    return (side * huber).sum(dim=1).mean(dim=-1) / kappa


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
            error = target.unsqueeze(1) - q.unsqueeze(2)
            side = (tau.unsqueeze(2) - (error.detach() < 0).to(q.dtype)).abs()
            slope = -(side * error.clamp(-ctx.kappa, ctx.kappa)).mean(dim=-1) / ctx.kappa
        return grads[0].unsqueeze(-1) * slope, None, None, None
