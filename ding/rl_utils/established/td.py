"""Façades of temporal-difference errors and returns.

Letters in shapes: T time (of n-step rewards: the n steps), B batch, A actions. `weight` None means
ones. `done` is termination: a value after a time limit is still worth bootstrapping from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ding.rl_utils.td import at_action, lambda_returns, spread, td_target, weighted_mean

Criterion = Callable[[Tensor, Tensor], Tensor]
Gamma = float | Sequence[float] | Tensor


def squared_error(prediction: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(prediction, target, reduction="none")


def error(
    criterion: Criterion, prediction: Tensor, target: Tensor, weight: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample; a weight (B,) is that of all agents of a sample."""
    loss = criterion(prediction, target.detach())
    return sample_mean(loss, weight), loss


def sample_mean(loss: Tensor, weight: Tensor | None) -> Tensor:
    return weighted_mean(loss, None if weight is None else spread(weight, loss))


def discount_of(
    done: Tensor | None,
    gamma: Gamma,
    like: Tensor,
    nstep: int = 1,
    value_gamma: float | Tensor | None = None,
) -> Tensor:
    """gamma**n, zero where `done`; `value_gamma` is given where fewer than `nstep` were left."""
    base = gamma if value_gamma is None else value_gamma
    discount = torch.as_tensor(base, dtype=like.dtype, device=like.device)
    discount = discount**nstep if value_gamma is None else discount
    if done is None:
        return discount
    lasting = spread(discount, done)
    # One pass for flags: these are as large as the trajectories.
    return torch.where(done, 0.0, lasting) if done.dtype == torch.bool else lasting * (1 - done)


def discounted_reward(reward: Tensor, gamma: Gamma, nstep: int) -> Tensor:
    """(T, B) -> (B,)."""
    if len(reward) != nstep:
        raise ValueError(f"reward must be (nstep, B) with nstep {nstep}, got {tuple(reward.shape)}")
    base = torch.as_tensor(gamma, dtype=reward.dtype, device=reward.device)
    exponent = torch.arange(nstep, dtype=reward.dtype, device=reward.device)
    factor = spread(base, reward[0]) ** exponent.reshape(-1, *[1] * (reward.ndim - 1))
    return (factor * reward).sum(dim=0)


class q_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    q: Tensor
    next_q: Tensor
    act: Tensor
    next_act: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None


def q_1step_td_error(
    data: q_1step_td_data, gamma: float, criterion: Criterion = squared_error
) -> Tensor:
    """Mean weighted loss of Q(s, a) against reward + gamma Q'(s', a')."""
    next_value = at_action(data.next_q, data.next_act)
    target = td_target(data.reward, discount_of(data.done, gamma, next_value), next_value)
    return error(criterion, at_action(data.q, data.act), target, data.weight)[0]


class q_v_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    """`v` is the value of the next state."""

    q: Tensor
    v: Tensor
    act: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None


def q_v_1step_td_error(
    data: q_v_1step_td_data, gamma: float, criterion: Criterion = squared_error
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of Q(s, a) against reward + gamma V(s')."""
    target = td_target(data.reward, discount_of(data.done, gamma, data.v), data.v)
    return error(criterion, at_action(data.q, data.act), target, data.weight)


class v_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    v: Tensor
    next_v: Tensor
    reward: Tensor
    done: Tensor | None
    weight: Tensor | None


def v_1step_td_error(
    data: v_1step_td_data, gamma: float, criterion: Criterion = squared_error
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of V(s) against reward + gamma V(s')."""
    target = td_target(data.reward, discount_of(data.done, gamma, data.next_v), data.next_v)
    return error(criterion, data.v, target, data.weight)


class nstep_return_data(NamedTuple):  # noqa: N801 (established name)
    """`reward` (T, B), `next_value` (B,) after the T steps, `done` (B,) after them."""

    reward: Tensor
    next_value: Tensor
    done: Tensor


def nstep_return(
    data: nstep_return_data,
    gamma: Gamma,
    nstep: int,
    value_gamma: float | Tensor | None = None,
) -> Tensor:
    """(B,): discounted rewards plus discounted value; `gamma` is one number or one per sample.

    A value per agent, (B, A), gives a return per agent.
    """
    return bootstrapped(data, gamma, nstep, value_gamma=value_gamma)


def bootstrapped(
    data: nstep_return_data,
    gamma: Gamma,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: float | Tensor | None = None,
) -> Tensor:
    """`nstep_return`, with `cum_reward` from rewards (B,) that are summed up already."""
    reward, next_value, done = data
    reward = reward if cum_reward else discounted_reward(reward, gamma, nstep)
    return td_target(reward, discount_of(done, gamma, next_value, nstep, value_gamma), next_value)


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
    gamma: Gamma,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: float | Tensor | None = None,
    criterion: Criterion = squared_error,
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of Q(s, a) against the n-step return.

    `reward` is (T, B), with `cum_reward` the discounted sum (B,) already. `value_gamma` (B,) is the
    discount of the value where fewer than `nstep` steps were left. Actions may be (B, agents), with
    q (B, agents, A); the agents share rewards, `done` and weights.
    """
    steps = nstep_return_data(data.reward, at_action(data.next_n_q, data.next_n_action), data.done)
    target = bootstrapped(steps, gamma, nstep, cum_reward, value_gamma)
    return error(criterion, at_action(data.q, data.action), target, data.weight)


class v_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    v: Tensor
    next_n_v: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None
    value_gamma: Tensor | None


def v_nstep_td_error(
    data: v_nstep_td_data, gamma: float, nstep: int = 1, criterion: Criterion = squared_error
) -> tuple[Tensor, Tensor]:
    """Mean weighted loss and loss per sample of V(s) against the n-step return; reward (T, B)."""
    steps = nstep_return_data(data.reward, data.next_n_v, data.done)
    target = nstep_return(steps, gamma, nstep, data.value_gamma)
    return error(criterion, data.v, target, data.weight)


def generalized_lambda_returns(
    bootstrap_values: Tensor,
    rewards: Tensor,
    gammas: float | Tensor,
    lambda_: float | Tensor,
    done: Tensor | None = None,
) -> Tensor:
    """Lambda returns (T, B) from values (T + 1, B) and rewards (T, B); factors may be (T, B)."""
    return multistep_forward_view(bootstrap_values[1:], rewards, gammas, lambda_, done)


def multistep_forward_view(
    bootstrap_values: Tensor,
    rewards: Tensor,
    gammas: float | Tensor,
    lambda_: float | Tensor,
    done: Tensor | None = None,
) -> Tensor:
    """`generalized_lambda_returns` from the values *after* each step, (T, B)."""
    discount = discount_of(done, gammas, rewards).expand_as(rewards)
    return lambda_returns(rewards, discount, bootstrap_values, lambda_)


class td_lambda_data(NamedTuple):  # noqa: N801 (established name)
    """`value` (T + 1, B), `reward` (T, B), `weight` (T, B) or (B,)."""

    value: Tensor
    reward: Tensor
    weight: Tensor | None


def td_lambda_error(data: td_lambda_data, gamma: float = 0.9, lambda_: float = 0.8) -> Tensor:
    """Half the mean weighted squared error of the values against their lambda returns."""
    with torch.no_grad():
        target = generalized_lambda_returns(data.value, data.reward, gamma, lambda_)
    return 0.5 * weighted_mean(squared_error(data.value[:-1], target), data.weight)
