"""V-trace: off-policy actor-critic of IMPALA, https://arxiv.org/abs/1802.01561.

Letters in shapes: T time, B batch, A actions (or dimensions of the action).
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor

from ding.rl_utils.isw import Output, compute_importance_weights
from ding.rl_utils.ppo import mean, mu_sigma
from ding.rl_utils.scan import fused, reverse_scan
from ding.rl_utils.td import squared_error
from ding.torch_utils.distribution import (
    categorical_log_prob_entropy,
    gaussian_entropy,
    gaussian_log_prob,
)


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
    """(T, B), from values (T + 1, B): equation 1 of the paper, with c scaled by lambda."""
    columns = clipped_rhos, clipped_cs, reward, bootstrap_values
    returns = fused("vtrace_returns", columns, len(reward), (gamma, gamma * lambda_))
    if returns is not None:
        return returns.view(reward.shape)
    value, following = bootstrap_values[:-1], bootstrap_values[1:]
    delta = clipped_rhos * (reward + gamma * following - value)
    return value + reverse_scan(delta, gamma * lambda_ * clipped_cs, torch.zeros_like(delta[0]))


def vtrace_advantage(
    clipped_pg_rhos: Tensor,
    reward: Tensor,
    return_: Tensor,
    bootstrap_values: Tensor,
    gamma: float,
) -> Tensor:
    """(T, B); `return_` is that of the next step, `bootstrap_values` (T, B) are of this one."""
    return clipped_pg_rhos * (reward + gamma * return_ - bootstrap_values)


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
    advantage, return_ = _targets(data, "discrete", gamma, lambda_, clips)
    logit = cast(Tensor, data.target_output)
    return _error(data, advantage, return_, *categorical_log_prob_entropy(logit, data.action))


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
    advantage, return_ = _targets(data, "continuous", gamma, lambda_, clips)
    mu, sigma = mu_sigma(data.target_output)
    log_prob = gaussian_log_prob(mu, sigma, data.action.reshape(mu.shape))
    return _error(data, advantage, return_, log_prob, gaussian_entropy(sigma))


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


def _error(
    data: vtrace_data, advantage: Tensor, return_: Tensor, log_prob: Tensor, entropy: Tensor
) -> vtrace_loss:
    policy_loss = -mean(log_prob * advantage, data.weight)
    value_loss = mean(squared_error(data.value[:-1], return_), data.weight)
    return vtrace_loss(policy_loss, value_loss, mean(entropy, data.weight))
