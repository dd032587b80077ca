"""Façades of proximal policy optimisation.

Letters in shapes: B batch, A actions (or dimensions of the action). `weight` None means ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

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
Clips = tuple[float, float | None]
"""Clip of the ratio, and the dual clip or None."""
Evaluate = Callable[[Any, Any], tuple[Tensor, Tensor]]
"""Output of a network and actions to log-probabilities and entropies."""


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
    return losses(data, log_prob_entropy, (clip_ratio, dual_clip), use_value_clip)


def ppo_error_continuous(
    data: ppo_data_continuous,
    clip_ratio: float = 0.2,
    use_value_clip: bool = True,
    dual_clip: float | None = None,
) -> tuple[ppo_loss, ppo_info]:
    """`ppo_error` of a diagonal Gaussian policy."""
    return losses(data, gaussian_log_prob_entropy, (clip_ratio, dual_clip), use_value_clip)


def ppo_policy_error(
    data: ppo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    return policy_losses(data, log_prob_entropy, (clip_ratio, dual_clip))


def ppo_policy_error_continuous(
    data: ppo_policy_data_continuous, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    return policy_losses(data, gaussian_log_prob_entropy, (clip_ratio, dual_clip))


def ppo_value_error(
    data: ppo_value_data, clip_ratio: float = 0.2, use_value_clip: bool = True
) -> Tensor:
    """Half the mean weighted squared error, of the clipped value where that is larger."""
    value, value_old, return_, weight = data
    return value_loss(value, value_old, return_, clip_ratio if use_value_clip else None, weight)


def losses(
    data: Sequence[Any], evaluate: Evaluate, clips: Clips, use_value_clip: bool
) -> tuple[ppo_loss, ppo_info]:
    """`ppo_error` by the fields of `ppo_data`, which a factor (of HAPPO) may follow."""
    new, old, action, value_new, value_old, adv, return_, weight, *factor = data
    policy, info = policy_losses((new, old, action, adv, weight, *factor), evaluate, clips)
    value = ppo_value_data(value_new, value_old, return_, weight)
    value_error = ppo_value_error(value, clips[0], use_value_clip)
    return ppo_loss(policy.policy_loss, value_error, policy.entropy_loss), info


def policy_losses(
    data: Sequence[Any], evaluate: Evaluate, clips: Clips
) -> tuple[ppo_policy_loss, ppo_info]:
    """`ppo_policy_error` by the fields of `ppo_policy_data`; a factor scales what is clipped.

    Log-probabilities may be (B, agents) that share an advantage (B,).
    """
    (clip_ratio, dual_clip), (output, old_output, action, adv, weight, *factor) = clips, data
    if dual_clip is not None and dual_clip <= 1.0:
        raise ValueError(f"dual_clip must be greater than 1 (or None), got {dual_clip}")
    log_prob, entropy = evaluate(output, action)
    with torch.no_grad():
        log_prob_old = evaluate(old_output, action)[0].reshape(log_prob.shape)
    log_ratio = log_prob - log_prob_old
    ratio = log_ratio.exp()
    if ratio.ndim > adv.ndim:
        ratio, entropy = ratio.mean(dim=1), entropy.mean(dim=1)
    objective = clipped_surrogate(ratio, adv, clip_ratio)
    for scale in factor:
        objective = objective * scale.reshape(adv.shape)
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
