"""Temporal-difference errors and returns.

Letters in shapes: T time (of n-step rewards: the n steps), B batch, A actions. `weight` None means
ones. `done` is termination: a value after a time limit is still worth bootstrapping from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ding.rl_utils.scan import fused, reverse_scan

Criterion = Callable[[Tensor, Tensor], Tensor]
Gamma = float | Sequence[float] | Tensor


def squared_error(prediction: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(prediction, target, reduction="none")


def picked(q: Tensor, action: Tensor) -> Tensor:
    """(B, A), (B,) -> (B,)."""
    return q.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)


def weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
    """Mean; a weight per sample (B,) is that of all its agents."""
    return loss.mean() if weight is None else (loss * spread(weight, loss)).mean()


def continues(done: Tensor, like: Tensor) -> Tensor:
    return 1 - spread(done, like).to(like.dtype)


def spread(x: Tensor, like: Tensor) -> Tensor:
    """`x` with trailing axes of one, so that a number per sample meets one per sample and agent."""
    return x.reshape(x.shape + (1,) * (like.ndim - x.ndim)) if x.ndim < like.ndim else x


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
    next_value = picked(data.next_q, data.next_act)
    target = data.reward + gamma * next_value * continues(data.done, next_value)
    return weighted(criterion(picked(data.q, data.act), target.detach()), data.weight)


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
    target = spread(data.reward, data.v) + gamma * data.v * continues(data.done, data.v)
    loss = criterion(picked(data.q, data.act), target.detach())
    return weighted(loss, data.weight), loss


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
    v, next_v, reward, done, weight = data
    next_v = next_v if done is None else next_v * continues(done, next_v)
    target = spread(reward, v) + gamma * next_v
    loss = criterion(v, target.detach())
    return weighted(loss, weight), loss


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
    """`nstep_return`, with `cum_reward` from rewards (B,) that are summed up already.

    `value_gamma` (B,) is the discount of the value where fewer than `nstep` steps were left.
    """
    reward, next_value, done = data
    base = torch.as_tensor(gamma, dtype=next_value.dtype, device=next_value.device)
    if not cum_reward:
        reward = discounted_reward(reward, base, nstep)
    discount = base**nstep if value_gamma is None else torch.as_tensor(value_gamma).to(base)
    follow = spread(discount, next_value) * next_value * continues(done, next_value)
    return spread(reward, follow) + follow


def discounted_reward(reward: Tensor, gamma: Gamma, nstep: int) -> Tensor:
    """(T, B) -> (B,)."""
    if len(reward) != nstep:
        raise ValueError(f"reward must be (nstep, B) with nstep {nstep}, got {tuple(reward.shape)}")
    base = torch.as_tensor(gamma, dtype=reward.dtype, device=reward.device)
    exponent = torch.arange(nstep, dtype=reward.dtype, device=reward.device)
    factor = spread(base, reward[0]) ** exponent.reshape(-1, *[1] * (reward.ndim - 1))
    return (factor * reward).sum(dim=0)


def sequence_returns(
    reward: Tensor, discount: Tensor, value: Tensor, mask: Tensor, nstep: int
) -> Tensor:
    """(T, B): the n-step return at every step of sequences, from the values (T + 1, B) they have.

    `discount` is that of one step, 0 where an episode terminated. Returns stop early, at the value
    there, where the sequence ends: after T steps, or with the last step that is in `mask`.
    """
    returns = value
    for _ in range(nstep):
        ahead = torch.where(mask, reward + discount * returns[1:], value[:-1])
        returns = torch.cat([ahead, value[-1:]])
    return returns[:-1]


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
    steps = nstep_return_data(data.reward, picked(data.next_n_q, data.next_n_action), data.done)
    target = bootstrapped(steps, gamma, nstep, cum_reward, value_gamma)
    loss = criterion(picked(data.q, data.action), target.detach())
    return weighted(loss, data.weight), loss


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
    loss = criterion(data.v, target.detach())
    return weighted(loss, data.weight), loss


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
    """`generalized_lambda_returns` from the values *after* each step, (T, B).

    Equation 12.18 of Sutton and Barto: x[t] = r[t] + gamma ((1 - lambda) v[t + 1] + lambda x[t+1]).
    """
    if not isinstance(gammas, Tensor) and not isinstance(lambda_, Tensor):
        ended = torch.zeros_like(rewards, dtype=torch.bool) if done is None else done
        columns = bootstrap_values, rewards, ended
        returns = fused("lambda_returns", columns, len(rewards), (gammas, lambda_))
        if returns is not None:
            return returns.view(rewards.shape)
    gamma, mix = (_factor(factor, rewards) for factor in (gammas, lambda_))
    if done is not None:
        gamma = gamma * continues(done, rewards)
    delta = rewards + gamma * (1 - mix) * bootstrap_values
    return reverse_scan(delta, gamma * mix, bootstrap_values[-1])


def _factor(factor: float | Tensor, like: Tensor) -> Tensor:
    tensor = torch.as_tensor(factor, dtype=like.dtype, device=like.device)
    return tensor.expand_as(like)


class td_lambda_data(NamedTuple):  # noqa: N801 (established name)
    """`value` (T + 1, B), `reward` (T, B), `weight` (T, B) or (B,)."""

    value: Tensor
    reward: Tensor
    weight: Tensor | None


def td_lambda_error(data: td_lambda_data, gamma: float = 0.9, lambda_: float = 0.8) -> Tensor:
    """Half the mean weighted squared error of the values against their lambda returns."""
    with torch.no_grad():
        target = generalized_lambda_returns(data.value, data.reward, gamma, lambda_)
    loss = squared_error(data.value[:-1], target)
    return 0.5 * (loss if data.weight is None else loss * data.weight).mean()


def discount_cumsum(x: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    """(T, ...): the discounted sum of what is left at each step, e.g. returns to go."""
    total = np.array(x)
    for t in range(len(total) - 2, -1, -1):
        total[t] += gamma * total[t + 1]
    return total
