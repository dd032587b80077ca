"""Façades of V-trace.

Letters in shapes: T time, B batch, A actions (or dimensions of the action).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor

from ding.rl_utils.a2c import actor_critic_losses
from ding.rl_utils.established.ppo import gaussian_log_prob_entropy
from ding.rl_utils.isw import Output, compute_importance_weights
from ding.rl_utils.vtrace import vtrace_advantage, vtrace_returns
from ding.torch_utils.distribution import categorical_log_prob_entropy


class vtrace_data(NamedTuple):  # noqa: N801 (established name)
    """Logits (T, B, A), continuous `{'mu', 'sigma'}` of (T, B, A); `value` (T + 1, B).

    `reward` and `weight` are (T, B); `weight` None means ones.
    """

    target_output: Output
    behaviour_output: Output
    action: Tensor
    value: Tensor
    reward: Tensor
    weight: Tensor | None


class vtrace_loss(NamedTuple):  # noqa: N801 (established name)
    policy_loss: Tensor
    value_loss: Tensor
    entropy_loss: Tensor


def vtrace_nstep_return(
    clipped_rhos: Tensor,
    clipped_cs: Tensor,
    reward: Tensor,
    bootstrap_values: Tensor,
    gamma: float = 0.99,
    lambda_: float = 0.95,
) -> Tensor:
    """(T, B), from values (T + 1, B); c is scaled by lambda."""
    value, next_value = bootstrap_values[:-1], bootstrap_values[1:]
    discount = torch.full_like(reward, gamma)
    return vtrace_returns(clipped_rhos, lambda_ * clipped_cs, reward, discount, value, next_value)


def vtrace_error_discrete_action(
    data: vtrace_data,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0,
    rho_pg_clip_ratio: float = 1.0,
) -> vtrace_loss:
    """Losses of policy and value, and the mean entropy (to be maximised).

    The ratios bound importance weights: of the values' errors, of the trace and of the policy loss.
    """
    clips = rho_clip_ratio, c_clip_ratio, rho_pg_clip_ratio
    targets = _targets(data, "discrete", gamma, lambda_, clips)
    logit = cast(Tensor, data.target_output)
    return _error(data, categorical_log_prob_entropy(logit, data.action), targets)


def vtrace_error_continuous_action(
    data: vtrace_data,
    gamma: float = 0.99,
    lambda_: float = 0.95,
    rho_clip_ratio: float = 1.0,
    c_clip_ratio: float = 1.0,
    rho_pg_clip_ratio: float = 1.0,
) -> vtrace_loss:
    """`vtrace_error_discrete_action` of a diagonal Gaussian policy."""
    clips = rho_clip_ratio, c_clip_ratio, rho_pg_clip_ratio
    targets = _targets(data, "continuous", gamma, lambda_, clips)
    return _error(data, gaussian_log_prob_entropy(data.target_output, data.action), targets)


def _error(
    data: vtrace_data, evaluated: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor]
) -> vtrace_loss:
    """Losses by log-probabilities and entropies, and by advantages and returns, (T, B) each."""
    (log_prob, entropy), (advantage, return_) = evaluated, targets
    value, weight = data.value[:-1], data.weight
    return vtrace_loss(*actor_critic_losses(log_prob, entropy, advantage, value, return_, weight))


@torch.no_grad()
def _targets(
    data: vtrace_data,
    action_space: str,
    gamma: float,
    lambda_: float,
    clips: tuple[float, float, float],
) -> tuple[Tensor, Tensor]:
    """(T, B) each: advantages and returns."""
    target, behaviour, action, value, reward, _ = data
    weight = compute_importance_weights(target, behaviour, action, action_space)
    rho, c, rho_pg = (weight.clamp(max=clip) for clip in clips)
    return_ = vtrace_nstep_return(rho, c, reward, value, gamma, lambda_)
    next_return = torch.cat([return_[1:], value[-1:]])
    return vtrace_advantage(rho_pg, reward, next_return, value[:-1], gamma), return_
