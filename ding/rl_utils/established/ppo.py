"""Façades of proximal policy optimisation.

Letters in shapes: B batch, A actions (or dimensions of the action). `weight` None means ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ding.rl_utils.ppo import (
    Logit,
    bounded_below,
    clipped_surrogate,
    log_prob_entropy,
    ratio_statistics,
    value_loss,
)
from ding.rl_utils.td import weighted_mean
from ding.torch_utils.distribution import gaussian_entropy, gaussian_log_prob

Action = Tensor | Sequence[Tensor]
MuSigma = Mapping[str, Tensor] | Sequence[Tensor]


class ppo_data(NamedTuple):  # noqa: N801 (established name)
    """Logits (B, A), or lists of them for a multi-discrete action; everything else (B,)."""

    logit_new: Logit
    logit_old: Logit
    action: Action
    value_new: Tensor
    value_old: Tensor
    adv: Tensor
    return_: Tensor
    weight: Tensor | None


class ppo_data_continuous(NamedTuple):  # noqa: N801 (established name)
    """`{'mu': (B, A), 'sigma': (B, A)}` in place of logits."""

    mu_sigma_new: MuSigma
    mu_sigma_old: MuSigma
    action: Tensor
    value_new: Tensor
    value_old: Tensor
    adv: Tensor
    return_: Tensor
    weight: Tensor | None


class ppo_policy_data(NamedTuple):  # noqa: N801 (established name)
    logit_new: Logit
    logit_old: Logit
    action: Action
    adv: Tensor
    weight: Tensor | None


class ppo_policy_data_continuous(NamedTuple):  # noqa: N801 (established name)
    mu_sigma_new: MuSigma
    mu_sigma_old: MuSigma
    action: Tensor
    adv: Tensor
    weight: Tensor | None


class ppo_value_data(NamedTuple):  # noqa: N801 (established name)
    value_new: Tensor
    value_old: Tensor
    return_: Tensor
    weight: Tensor | None


class ppo_loss(NamedTuple):  # noqa: N801 (established name)
    policy_loss: Tensor
    value_loss: Tensor
    entropy_loss: Tensor


class ppo_policy_loss(NamedTuple):  # noqa: N801 (established name)
    policy_loss: Tensor
    entropy_loss: Tensor


class ppo_info(NamedTuple):  # noqa: N801 (established name)
    """Tensors without gradient: no update waits for them."""

    approx_kl: Tensor
    clipfrac: Tensor


def ppo_error(
    data: ppo_data,
    clip_ratio: float = 0.2,
    use_value_clip: bool = True,
    dual_clip: float | None = None,
) -> tuple[ppo_loss, ppo_info]:
    """Losses of policy, value and entropy (mean of the entropy, to be maximised)."""
    policy = ppo_policy_data(data.logit_new, data.logit_old, data.action, data.adv, data.weight)
    (policy_loss, entropy_loss), info = ppo_policy_error(policy, clip_ratio, dual_clip)
    value = ppo_value_data(data.value_new, data.value_old, data.return_, data.weight)
    return ppo_loss(
        policy_loss, ppo_value_error(value, clip_ratio, use_value_clip), entropy_loss
    ), info


def ppo_error_continuous(
    data: ppo_data_continuous,
    clip_ratio: float = 0.2,
    use_value_clip: bool = True,
    dual_clip: float | None = None,
) -> tuple[ppo_loss, ppo_info]:
    """`ppo_error` of a diagonal Gaussian policy."""
    new, old, action, _, _, adv, _, weight = data
    policy = ppo_policy_data_continuous(new, old, action, adv, weight)
    (policy_loss, entropy_loss), info = ppo_policy_error_continuous(policy, clip_ratio, dual_clip)
    value = ppo_value_data(data.value_new, data.value_old, data.return_, weight)
    return ppo_loss(
        policy_loss, ppo_value_error(value, clip_ratio, use_value_clip), entropy_loss
    ), info


def ppo_policy_error(
    data: ppo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    new = log_prob_entropy(data.logit_new, data.action)
    with torch.no_grad():
        old, _ = log_prob_entropy(data.logit_old, data.action)
    return policy_error(new, old, data.adv, data.weight, (clip_ratio, dual_clip))


def ppo_policy_error_continuous(
    data: ppo_policy_data_continuous, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    new = gaussian_log_prob_entropy(data.mu_sigma_new, data.action)
    with torch.no_grad():
        old, _ = gaussian_log_prob_entropy(data.mu_sigma_old, data.action)
    return policy_error(new, old, data.adv, data.weight, (clip_ratio, dual_clip))


def ppo_value_error(
    data: ppo_value_data, clip_ratio: float = 0.2, use_value_clip: bool = True
) -> Tensor:
    """Half the mean weighted squared error, of the clipped value where that is larger."""
    value, value_old, return_, weight = data
    return value_loss(value, value_old, return_, clip_ratio if use_value_clip else None, weight)


def policy_error(
    new: tuple[Tensor, Tensor],
    log_prob_old: Tensor,
    adv: Tensor,
    weight: Tensor | None,
    clips: tuple[float, float | None],
    factor: Tensor | None = None,
) -> tuple[ppo_policy_loss, ppo_info]:
    """Losses by log-probabilities and entropies (B,), or (B, agents) that share an advantage.

    `clips` are the clip ratio and the dual clip; `factor` (B,) scales the clipped objective.
    """
    (log_prob, entropy), (clip_ratio, dual_clip) = new, clips
    if dual_clip is not None and dual_clip <= 1.0:
        raise ValueError(f"dual_clip must be greater than 1 (or None), got {dual_clip}")
    log_ratio = log_prob - log_prob_old
    ratio = log_ratio.exp()
    if ratio.ndim > adv.ndim:
        ratio, entropy = ratio.mean(dim=1), entropy.mean(dim=1)
    objective = clipped_surrogate(ratio, adv, clip_ratio)
    objective = objective if factor is None else objective * factor
    if dual_clip is not None:
        objective = bounded_below(objective, adv, dual_clip)
    info = ppo_info(*ratio_statistics(log_ratio, ratio, clip_ratio))
    return ppo_policy_loss(-weighted_mean(objective, weight), weighted_mean(entropy, weight)), info


def gaussian_log_prob_entropy(output: MuSigma | Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """(B,) each, of a diagonal Gaussian {'mu', 'sigma'} or (mu, sigma) of (B, A)."""
    mu, sigma = (
        (output["mu"], output["sigma"]) if isinstance(output, Mapping) else (output[0], output[1])
    )
    return gaussian_log_prob(mu, sigma, action.reshape(mu.shape)), gaussian_entropy(sigma)
