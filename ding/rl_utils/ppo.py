"""Losses of proximal policy optimisation, https://arxiv.org/abs/1707.06347.

Letters in shapes: B batch, A actions (or dimensions of the action). `weight` None means ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ding.torch_utils.distribution import (
    categorical_log_prob_entropy,
    gaussian_entropy,
    gaussian_log_prob,
)

Logit = Tensor | Sequence[Tensor]
MuSigma = Mapping[str, Tensor] | Any


class ppo_data(NamedTuple):  # noqa: N801 (established name)
    """Logits (B, A), or lists of them for a multi-discrete action; everything else (B,)."""

    logit_new: Logit
    logit_old: Logit
    action: Any
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
    action: Any
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


def clipped_surrogate(
    ratio: Tensor, adv: Tensor, clip_ratio: float, dual_clip: float | None = None
) -> Tensor:
    """(B,): the pessimistic objective; `dual_clip` bounds it below for negative advantages."""
    objective = torch.min(ratio * adv, ratio.clamp(1 - clip_ratio, 1 + clip_ratio) * adv)
    return objective if dual_clip is None else bounded_below(objective, adv, dual_clip)


def bounded_below(objective: Tensor, adv: Tensor, dual_clip: float) -> Tensor:
    return torch.where(adv < 0, torch.max(objective, dual_clip * adv), objective)


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
    value_loss = ppo_value_error(value, clip_ratio, use_value_clip)
    return ppo_loss(policy_loss, value_loss, entropy_loss), info


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
    value_loss = ppo_value_error(value, clip_ratio, use_value_clip)
    return ppo_loss(policy_loss, value_loss, entropy_loss), info


def ppo_policy_error(
    data: ppo_policy_data, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    log_prob, entropy = log_prob_entropy(data.logit_new, data.action)
    with torch.no_grad():
        log_prob_old, _ = log_prob_entropy(data.logit_old, data.action)
    return policy_error(log_prob, log_prob_old, entropy, data, clip_ratio, dual_clip)


def ppo_policy_error_continuous(
    data: ppo_policy_data_continuous, clip_ratio: float = 0.2, dual_clip: float | None = None
) -> tuple[ppo_policy_loss, ppo_info]:
    mu, sigma = mu_sigma(data.mu_sigma_new)
    action = data.action.reshape(mu.shape)
    log_prob, entropy = gaussian_log_prob(mu, sigma, action), gaussian_entropy(sigma)
    with torch.no_grad():
        log_prob_old = gaussian_log_prob(*mu_sigma(data.mu_sigma_old), action)
    return policy_error(log_prob, log_prob_old, entropy, data, clip_ratio, dual_clip)


def ppo_value_error(
    data: ppo_value_data, clip_ratio: float = 0.2, use_value_clip: bool = True
) -> Tensor:
    """Half the mean weighted squared error, of the clipped value where that is larger."""
    value_new, value_old, return_, weight = data
    loss = (return_ - value_new).square()
    if use_value_clip:
        clipped = value_old + (value_new - value_old).clamp(-clip_ratio, clip_ratio)
        loss = torch.max(loss, (return_ - clipped).square())
    return 0.5 * mean(loss, weight)


def policy_error(
    log_prob: Tensor,
    log_prob_old: Tensor,
    entropy: Tensor,
    data: Any,
    clip_ratio: float,
    dual_clip: float | None,
    factor: Tensor | None = None,
) -> tuple[ppo_policy_loss, ppo_info]:
    """From log-probabilities (B,), or (B, agents) that share an advantage; `factor` is (B,)."""
    if dual_clip is not None and dual_clip <= 1.0:
        raise ValueError(f"dual_clip must be greater than 1 (or None), got {dual_clip}")
    log_ratio = log_prob - log_prob_old
    ratio = log_ratio.exp()
    if ratio.ndim > data.adv.ndim:
        ratio, entropy = ratio.mean(dim=1), entropy.mean(dim=1)
    objective = clipped_surrogate(ratio, data.adv, clip_ratio)
    if factor is not None:
        objective = objective * factor
    if dual_clip is not None:
        objective = bounded_below(objective, data.adv, dual_clip)
    with torch.no_grad():
        clipped = ((ratio - 1).abs() > clip_ratio).to(ratio.dtype)
        info = ppo_info(-log_ratio.mean(), clipped.mean())
    return ppo_policy_loss(-mean(objective, data.weight), mean(entropy, data.weight)), info


def mean(x: Tensor, weight: Tensor | None) -> Tensor:
    return x.mean() if weight is None else (x * weight).mean()


def log_prob_entropy(logit: Logit, action: Any) -> tuple[Tensor, Tensor]:
    """(B,) each; several heads are independent, so theirs add up."""
    if isinstance(logit, Tensor):
        return categorical_log_prob_entropy(logit, action)
    actions = action.unbind(-1) if isinstance(action, Tensor) else action
    parts = [categorical_log_prob_entropy(o, a) for o, a in zip(logit, actions, strict=True)]
    log_probs, entropies = zip(*parts, strict=True)
    return torch.stack(log_probs).sum(dim=0), torch.stack(entropies).sum(dim=0)


def mu_sigma(output: MuSigma) -> tuple[Tensor, Tensor]:
    if isinstance(output, Mapping):
        return output["mu"], output["sigma"]
    return output[0], output[1]
