"""Temporal-difference errors and returns.

Letters in shapes: T time (of n-step rewards: the n steps), B batch, A actions. `weight` None means
ones. `done` is termination: a value after a time limit is still worth bootstrapping from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Criterion = Callable[[Tensor, Tensor], Tensor]


def _squared_error(prediction: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(prediction, target, reduction="none")


def _picked(q: Tensor, action: Tensor) -> Tensor:
    """(B, A), (B,) -> (B,)."""
    return q.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)


def _weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
    return loss.mean() if weight is None else (loss * weight).mean()


def _not(done: Tensor, like: Tensor) -> Tensor:
    return 1 - done.to(like.dtype)


class q_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    q: Tensor
    next_q: Tensor
    act: Tensor
    next_act: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None


def q_1step_td_error(
    data: q_1step_td_data, gamma: float, criterion: Criterion = _squared_error
) -> Tensor:
    """Mean weighted loss of Q(s, a) against reward + gamma Q'(s', a')."""
    next_value = _picked(data.next_q, data.next_act)
    target = data.reward + gamma * next_value * _not(data.done, next_value)
    return _weighted(criterion(_picked(data.q, data.act), target.detach()), data.weight)


class q_v_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    """`v` is the value of the next state."""

    q: Tensor
    v: Tensor
    act: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None


def q_v_1step_td_error(
    data: q_v_1step_td_data, gamma: float, criterion: Criterion = _squared_error
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of Q(s, a) against reward + gamma V(s')."""
    target = data.reward + gamma * data.v * _not(data.done, data.v)
    loss = criterion(_picked(data.q, data.act), target.detach())
    return _weighted(loss, data.weight), loss


class v_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    v: Tensor
    next_v: Tensor
    reward: Tensor
    done: Tensor | None
    weight: Tensor | None


def v_1step_td_error(
    data: v_1step_td_data, gamma: float, criterion: Criterion = _squared_error
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of V(s) against reward + gamma V(s')."""
    v, next_v, reward, done, weight = data
    target = reward + gamma * (next_v if done is None else next_v * _not(done, next_v))
    loss = criterion(v, target.detach())
    return _weighted(loss, weight), loss


class nstep_return_data(NamedTuple):  # noqa: N801 (established name)
    """`reward` (T, B), `next_value` (B,) after the T steps, `done` (B,) after them."""

    reward: Tensor
    next_value: Tensor
    done: Tensor


def nstep_return(
    data: nstep_return_data,
    gamma: float | Sequence[float] | Tensor,
    nstep: int,
    value_gamma: Tensor | None = None,
) -> Tensor:
    """(B,): discounted rewards plus discounted value; `gamma` is one number or one per sample."""
    reward, next_value, done = data
    if len(reward) != nstep:
        raise ValueError(f"reward must be (nstep, B) with nstep {nstep}, got {tuple(reward.shape)}")
    base = torch.as_tensor(gamma, dtype=reward.dtype, device=reward.device)
    exponent = torch.arange(nstep, dtype=reward.dtype, device=reward.device)
    factor = base ** exponent.reshape(-1, *[1] * (reward.ndim - 1))
    discount = base**nstep if value_gamma is None else value_gamma
    return (factor * reward).sum(dim=0) + discount * next_value * _not(done, next_value)


class q_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    q: Tensor
    next_n_q: Tensor
    action: Tensor
    next_n_action: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None


def q_nstep_td_error(
    data: q_nstep_td_data,
    gamma: float | Sequence[float],
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: Tensor | None = None,
    criterion: Criterion = _squared_error,
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of Q(s, a) against the n-step return.

    `reward` is (T, B), with `cum_reward` the discounted sum (B,) already. `value_gamma` (B,) is the
    discount of the value where fewer than `nstep` steps were left.
    """
    next_value = _picked(data.next_n_q, data.next_n_action)
    if cum_reward:
        base = torch.as_tensor(gamma, dtype=next_value.dtype, device=next_value.device)
        discount = base**nstep if value_gamma is None else value_gamma
        target = data.reward + discount * next_value * _not(data.done, next_value)
    else:
        steps = nstep_return_data(data.reward, next_value, data.done)
        target = nstep_return(steps, gamma, nstep, value_gamma)
    loss = criterion(_picked(data.q, data.action), target.detach())
    return _weighted(loss, data.weight), loss


class v_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    v: Tensor
    next_n_v: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None
    value_gamma: Tensor | None


def v_nstep_td_error(
    data: v_nstep_td_data, gamma: float, nstep: int = 1, criterion: Criterion = _squared_error
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of V(s) against the n-step return; reward (T, B)."""
    steps = nstep_return_data(data.reward, data.next_n_v, data.done)
    target = nstep_return(steps, gamma, nstep, data.value_gamma)
    loss = criterion(data.v, target.detach())
    return _weighted(loss, data.weight), loss


def generalized_lambda_returns(
    bootstrap_values: Tensor,
    rewards: Tensor,
    gammas: float | Tensor,
    lambda_: float | Tensor,
    done: Tensor | None = None,
) -> Tensor:
    """Lambda returns (T, B) from values (T + 1, B) and rewards (T, B); factors may be (T, B)."""
    gammas = torch.as_tensor(gammas, dtype=rewards.dtype, device=rewards.device).expand_as(rewards)
    lambdas = torch.as_tensor(lambda_, dtype=rewards.dtype, device=rewards.device)
    lambdas = lambdas.expand_as(rewards)
    if done is not None:
        gammas = gammas * _not(done, rewards)
    following = bootstrap_values[1:]
    returns = torch.empty_like(rewards)
    later = following[-1]
    for t in range(len(rewards) - 1, -1, -1):
        ahead = (1 - lambdas[t]) * following[t] + lambdas[t] * later
        later = rewards[t] + gammas[t] * ahead
        returns[t] = later
    return returns


class td_lambda_data(NamedTuple):  # noqa: N801 (established name)
    """`value` (T + 1, B), `reward` (T, B), `weight` (T, B)."""

    value: Tensor
    reward: Tensor
    weight: Tensor | None


def td_lambda_error(data: td_lambda_data, gamma: float = 0.9, lambda_: float = 0.8) -> Tensor:
    """Half the mean weighted squared error of the values against their lambda returns."""
    with torch.no_grad():
        target = generalized_lambda_returns(data.value, data.reward, gamma, lambda_)
    return 0.5 * _weighted(_squared_error(data.value[:-1], target), data.weight)
