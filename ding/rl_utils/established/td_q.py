"""Façades of variants of Q-learning: branching, soft, Munchausen, rescaled, from demonstrations.

Letters in shapes: T the n steps, B batch, A actions, D branches. `weight` None means ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ding.rl_utils.established.td import (
    Criterion,
    Gamma,
    bootstrapped,
    discount_of,
    error,
    nstep_return_data,
    q_nstep_td_data,
    q_nstep_td_error,
    sample_mean,
    squared_error,
)
from ding.rl_utils.td import at_action, munchausen_bonus, soft_value, td_target
from ding.rl_utils.value_rescale import value_inv_transform, value_transform

Transform = Callable[[Tensor], Tensor]


class m_q_1step_td_data(NamedTuple):  # noqa: N801 (established name)
    """Q-values (B, A): of the network, and of the target network before and after the step."""

    q: Tensor
    target_q: Tensor
    next_q: Tensor
    act: Tensor
    reward: Tensor
    done: Tensor
    weight: Tensor | None


def m_q_1step_td_error(
    data: m_q_1step_td_data,
    gamma: float | Tensor,
    tau: float,
    alpha: float,
    criterion: Criterion = squared_error,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Munchausen DQN, https://arxiv.org/abs/2007.14430: the reward gains alpha tau log pi(a|s).

    Gives the mean weighted loss, loss per sample (B,), mean gap between the two best actions, and
    where the gain was clipped to [-1, 1], (B,). `gamma` may be one number per sample.
    """
    with torch.no_grad():
        bonus = munchausen_bonus(data.target_q, data.act, tau)
        discount = discount_of(data.done, gamma, data.next_q)
        reward = data.reward + alpha * bonus.clamp(-1, 1)
        target = td_target(reward, discount, soft_value(data.next_q, tau))
        best, second = data.target_q.topk(2, dim=-1).values.unbind(-1)
        clipped = (bonus.abs() > 1).to(bonus.dtype)
    mean, loss = error(criterion, at_action(data.q, data.act), target, data.weight)
    return mean, loss, (best - second).mean(), clipped


def bdq_nstep_td_error(
    data: q_nstep_td_data,
    gamma: Gamma,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: float | Tensor | None = None,
    criterion: Criterion = squared_error,
) -> tuple[Tensor, Tensor]:
    """Action branching, https://arxiv.org/abs/1711.08946: the mean error of the branches.

    Q-values are (B, D, A) and actions (B, D). Every branch has its own target.
    """
    loss = q_nstep_td_error(data, gamma, nstep, cum_reward, value_gamma, criterion)[1].mean(dim=-1)
    return sample_mean(loss, data.weight), loss


def q_nstep_td_error_with_rescale(
    data: q_nstep_td_data,
    gamma: Gamma,
    nstep: int = 1,
    value_gamma: float | Tensor | None = None,
    criterion: Criterion = squared_error,
    trans_fn: Transform = value_transform,
    inv_trans_fn: Transform = value_inv_transform,
) -> tuple[Tensor, Tensor]:
    """`q_nstep_td_error` of a network that predicts transformed values."""
    next_value = inv_trans_fn(at_action(data.next_n_q, data.next_n_action))
    steps = nstep_return_data(data.reward, next_value, data.done)
    target = trans_fn(bootstrapped(steps, gamma, nstep, value_gamma=value_gamma))
    return error(criterion, at_action(data.q, data.action), target, data.weight)


def q_nstep_sql_td_error(
    data: q_nstep_td_data,
    gamma: Gamma,
    alpha: float,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: float | Tensor | None = None,
    criterion: Criterion = squared_error,
) -> tuple[Tensor, Tensor, Tensor]:
    """Soft Q-learning, https://arxiv.org/abs/1702.08165; also gives the soft values (B,) used.

    Infinite values count as 20 (or -20): a wrong alpha slows learning down but does not end it.
    """
    next_value = soft_value(data.next_n_q, alpha)
    next_value = next_value.nan_to_num(nan=float("nan"), posinf=20.0, neginf=-20.0)
    steps = nstep_return_data(data.reward, next_value, data.done)
    target = bootstrapped(steps, gamma, nstep, cum_reward, value_gamma)
    mean, loss = error(criterion, at_action(data.q, data.action), target, data.weight)
    return mean, loss, next_value.detach()


class dqfd_nstep_td_data(NamedTuple):  # noqa: N801 (established name)
    """`reward` (T, B); `new_n_q_one_step` and the like are of one step ahead; `is_expert` (B,)."""

    q: Tensor
    next_n_q: Tensor
    action: Tensor
    next_n_action: Tensor
    reward: Tensor
    done: Tensor
    done_one_step: Tensor
    weight: Tensor | None
    new_n_q_one_step: Tensor
    next_n_action_one_step: Tensor
    is_expert: Tensor


DqfdLoss = tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]


def dqfd_nstep_td_error(  # noqa: PLR0913 (established signature)
    data: dqfd_nstep_td_data,
    gamma: float,
    lambda_n_step_td: float,
    lambda_supervised_loss: float,
    margin_function: float,
    lambda_one_step_td: float = 1.0,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: float | Tensor | None = None,
    criterion: Criterion = squared_error,
) -> DqfdLoss:
    """Q-learning from demonstrations, https://arxiv.org/abs/1704.03732.

    The n-step and the one-step loss, plus how far the expert's action is from being the best by a
    margin. Gives the mean weighted loss, loss per sample (B,) and the means of the three parts.
    """
    weights = (lambda_n_step_td, lambda_one_step_td, lambda_supervised_loss)
    targets = _dqfd_targets(data, gamma, nstep, cum_reward, value_gamma)
    return _dqfd_loss(data, targets, weights, margin_function, criterion)


def dqfd_nstep_td_error_with_rescale(  # noqa: PLR0913 (established signature)
    data: dqfd_nstep_td_data,
    gamma: float,
    lambda_n_step_td: float,
    lambda_supervised_loss: float,
    lambda_one_step_td: float,
    margin_function: float,
    nstep: int = 1,
    cum_reward: bool = False,
    value_gamma: float | Tensor | None = None,
    criterion: Criterion = squared_error,
    trans_fn: Transform = value_transform,
    inv_trans_fn: Transform = value_inv_transform,
) -> DqfdLoss:
    """`dqfd_nstep_td_error` of a network that predicts transformed values."""
    weights = (lambda_n_step_td, lambda_one_step_td, lambda_supervised_loss)
    plain = data._replace(
        next_n_q=inv_trans_fn(data.next_n_q), new_n_q_one_step=inv_trans_fn(data.new_n_q_one_step)
    )
    n_step, one_step = _dqfd_targets(plain, gamma, nstep, cum_reward, value_gamma)
    targets = trans_fn(n_step), trans_fn(one_step)
    return _dqfd_loss(data, targets, weights, margin_function, criterion)


def _dqfd_targets(
    data: dqfd_nstep_td_data,
    gamma: float,
    nstep: int,
    cum_reward: bool,
    value_gamma: float | Tensor | None,
) -> tuple[Tensor, Tensor]:
    """(B,) each: after `nstep` steps and after one."""
    if cum_reward and nstep != 1:
        raise ValueError(f"cum_reward leaves no one-step reward with nstep {nstep}; give (T, B)")
    next_value = at_action(data.next_n_q, data.next_n_action)
    steps = nstep_return_data(data.reward, next_value, data.done)
    n_step = bootstrapped(steps, gamma, nstep, cum_reward, value_gamma)
    next_value = at_action(data.new_n_q_one_step, data.next_n_action_one_step)
    first = data.reward if cum_reward else data.reward[0]
    step = nstep_return_data(first, next_value, data.done_one_step)
    return n_step, bootstrapped(step, gamma, cum_reward=True)


def _dqfd_loss(
    data: dqfd_nstep_td_data,
    targets: tuple[Tensor, Tensor],
    weights: tuple[float, float, float],
    margin: float,
    criterion: Criterion,
) -> DqfdLoss:
    q = at_action(data.q, data.action)
    n_step, one_step = (criterion(q, target.detach()) for target in targets)
    chosen = torch.nn.functional.one_hot(data.action.long(), data.q.shape[-1])
    best = (data.q + margin * (1 - chosen)).amax(dim=-1)
    supervised = data.is_expert * (best - q)
    parts = n_step, one_step, supervised
    loss = sum(w * part for w, part in zip(weights, parts, strict=True))
    assert isinstance(loss, Tensor)
    per_sample = weights[0] * n_step.abs() + weights[1] * one_step.abs()
    per_sample = per_sample + weights[2] * supervised.abs()
    means = n_step.mean(), one_step.mean(), supervised.mean()
    return sample_mean(loss, data.weight), per_sample, means
