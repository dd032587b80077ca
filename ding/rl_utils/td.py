"""Targets of temporal-difference learning.

Every target is `reward + discount * next_value`. `reward` is the sum over n steps, `discount` is
gamma**n and zero where the episode *terminated*: a value after a time limit still counts.
Letters in shapes: T time, B batch, A actions, D branches of an action, K entries per action.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from ding.rl_utils.scan import fused, reverse_scan
from ding.utils.errors import ConfigError

Column = TypeVar("Column", Tensor, np.ndarray)


def at_action(x: Tensor, action: Tensor) -> Tensor:
    """Entries of the actions taken: (B, A), (B,) -> (B,) and (B, A, K), (B,) -> (B, K).

    B stands for any number of axes, those of `action`.
    """
    index = action.long().unsqueeze(-1)
    if x.ndim > index.ndim:
        index = index.unsqueeze(-1).expand(*index.shape, x.shape[-1])
    return x.gather(action.ndim, index).squeeze(action.ndim)


def weighted_mean(x: Tensor, weight: Tensor | None) -> Tensor:
    """Mean of `weight * x`; None means ones."""
    return x.mean() if weight is None else (x * weight).mean()


def spread(x: Tensor, like: Tensor) -> Tensor:
    """`x` with trailing axes of one, so that a number per sample meets several per sample."""
    return x.reshape(x.shape + (1,) * (like.ndim - x.ndim)) if x.ndim < like.ndim else x


def per_agent(reward: Column, value: Column) -> Column:
    """Rewards with the axes of `value`: one a step is for all agents, or each has its own."""
    if reward.shape == value.shape[: reward.ndim]:
        return reward.reshape(reward.shape + (1,) * (value.ndim - reward.ndim))
    raise ConfigError(
        f"rewards of the shape {tuple(reward.shape)} do not fit values (or actions) of the shape "
        f"{tuple(value.shape)}; give one reward a step, such as their sum, or use a model that "
        "values every agent"
    )


def td_target(reward: Tensor, discount: Tensor, next_value: Tensor) -> Tensor:
    """r + gamma^n v(s'); values may be (B, ...) with one reward and discount (B,) for all."""
    return spread(reward, next_value) + spread(discount, next_value) * next_value


def double_q_target(reward: Tensor, discount: Tensor, *, q_pick: Tensor, q_value: Tensor) -> Tensor:
    """(B,): r + gamma Q(s', argmax_a Q(s', a; theta); theta'), with `q_pick` by theta.

    Equation 4 of van Hasselt et al. 2016, https://arxiv.org/abs/1509.06461. The same values twice
    give max_a Q(s', a; theta'), equation 3: the target of DQN.
    """
    return td_target(reward, discount, at_action(q_value, q_pick.argmax(dim=-1)))


def branching_target(
    reward: Tensor, discount: Tensor, next_value: Tensor, *, mean: bool = True
) -> Tensor:
    """(B, 1), from the value (B, D) of the next best action in each branch: r + gamma mean_d Q_d.

    Equation 6 of Tavakoli et al. 2018, https://arxiv.org/abs/1711.08946. Without `mean` every
    branch has a target of its own, (B, D): equation 4.
    """
    value = next_value.mean(dim=-1, keepdim=True) if mean else next_value
    return td_target(reward, discount, value)


def soft_value(q: Tensor, alpha: float | Tensor) -> Tensor:
    """(B, A) -> (B,): alpha log sum_a exp(Q(s, a) / alpha), the mean of Q - alpha log pi.

    Under pi = softmax(Q / alpha); equation 3 of Haarnoja et al. 2017,
    https://arxiv.org/abs/1702.08165, for actions that can be counted.
    """
    return alpha * torch.logsumexp(q / alpha, dim=-1)


def munchausen_bonus(q: Tensor, action: Tensor, tau: float) -> Tensor:
    """(B,): tau log pi(a|s) of pi = softmax(q / tau), before it is clipped.

    Vieillard et al. 2020, https://arxiv.org/abs/2007.14430: rewards gain alpha [this]_{-1}^0 and
    values are soft, `soft_value(next_q, tau)`.
    """
    return tau * at_action(torch.log_softmax(q / tau, dim=-1), action)


def sequence_returns(
    reward: Tensor, discount: Tensor, value: Tensor, mask: Tensor, nstep: int
) -> Tensor:
    """(T, B): the n-step return at every step of sequences, from the values (T + 1, B) they have.

    `discount` is that of one step. Returns stop early, at the value there, where the sequence ends:
    after T steps, or with the last step that is in `mask`.
    """
    returns = value
    for _ in range(nstep):
        ahead = torch.where(mask, reward + discount * returns[1:], value[:-1])
        returns = torch.cat([ahead, value[-1:]])
    return returns[:-1]


def lambda_returns(
    reward: Tensor, discount: Tensor, next_value: Tensor, lambda_: float | Tensor
) -> Tensor:
    """(T, B): G[t] = r[t] + gamma[t] ((1 - lambda) v(s[t+1]) + lambda G[t+1]), by values after.

    Equation 12.18 of Sutton and Barto 2018; `lambda_` may be (T, B) too.
    """
    if not isinstance(lambda_, Tensor):
        returns = fused("lambda_returns", (reward, discount, next_value), (1 - lambda_, lambda_))
        if returns is not None:
            return returns
    delta = reward + discount * (1 - lambda_) * next_value
    return reverse_scan(delta, discount * lambda_, next_value[-1])


def discount_cumsum(x: np.ndarray, gamma: float = 1.0) -> np.ndarray:
    """(T, ...): the discounted sum of what is left at each step, e.g. returns to go."""
    total = np.array(x)
    for t in range(len(total) - 2, -1, -1):
        total[t] += gamma * total[t + 1]
    return total
