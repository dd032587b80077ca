"""Façades of the losses of whole distributions of returns.

Letters in shapes: T the n steps, B batch, A actions, K atoms, N and M quantiles of the network and
of the target. `weight` None means ones.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ding.rl_utils.established.td import (
    Gamma,
    bootstrapped,
    discount_of,
    discounted_reward,
    nstep_return_data,
    sample_mean,
)
from ding.rl_utils.td import at_action
from ding.rl_utils.td_dist import (
    categorical_target,
    cross_entropy,
    fraction_loss,
    log_of,
    quantile_huber,
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
    """Fields of `dist_1step_td_data`, but rewards are (T, B)."""

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
    """Mean weighted cross entropy of C51."""
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
    """Mean weighted cross entropy of C51 after `nstep` steps, and the cross entropy per sample.

    `n_atom` is that of the distributions.
    """
    p, next_p = at_action(data.dist, data.act), at_action(data.next_n_dist, data.next_n_act)
    reward = discounted_reward(data.reward, gamma, nstep)
    discount = discount_of(data.done, gamma, next_p, nstep, value_gamma)
    loss = cross_entropy(log_of(p), categorical_target(reward, discount, next_p, v_min, v_max))
    if isinstance(data.weight, float):
        return (loss * data.weight).mean(), loss
    return sample_mean(loss, data.weight), loss


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
    """Mean weighted loss and loss per sample of QR-DQN."""
    q, next_q = at_action(data.q, data.action), at_action(data.next_n_q, data.next_n_action)
    steps = nstep_return_data(data.reward, next_q, data.done)
    target = bootstrapped(steps, gamma, nstep, value_gamma=value_gamma)
    loss = quantile_huber(q, target, data.tau.reshape(-1, q.shape[-1]), kappa)
    return sample_mean(loss, data.weight), loss


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
    """Mean weighted loss and loss per sample of IQN."""
    by_action = qrdqn_nstep_td_data(*data)._replace(
        q=data.q.permute(1, 2, 0),
        next_n_q=data.next_n_q.permute(1, 2, 0),
        tau=data.replay_quantiles.reshape(data.q.shape[:2]).t(),
    )
    return qrdqn_nstep_td_error(by_action, gamma, nstep, value_gamma, kappa)


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
    """Mean weighted loss and loss per sample of FQF."""
    by_action = qrdqn_nstep_td_data(*data)._replace(
        q=data.q.transpose(1, 2), next_n_q=data.next_n_q.transpose(1, 2)
    )
    return qrdqn_nstep_td_error(by_action, gamma, nstep, value_gamma, kappa)


def evaluate_quantile_at_action(q_s: Tensor, actions: Tensor) -> Tensor:
    """(B, N, A), (B,) -> (B, N, 1)."""
    return at_action(q_s.transpose(1, 2), actions).unsqueeze(-1)


def fqf_calculate_fraction_loss(
    q_tau_i: Tensor, q_value: Tensor, quantiles: Tensor, actions: Tensor
) -> Tensor:
    """Mean loss of FQF's fractions `quantiles` (B, N + 1), from 0 to 1.

    `q_tau_i` (B, N - 1, A) is at the inner fractions, `q_value` (B, N, A) half-way between them.
    """
    q_tau, q_tau_hat = (at_action(q.transpose(1, 2), actions) for q in (q_tau_i, q_value))
    return fraction_loss(q_tau, q_tau_hat, quantiles)
