"""Log-probabilities, entropies and draws without the overhead of `torch.distributions`.

Letters in shapes: B batch (any number of leading axes), A actions or dimensions of the action.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


def categorical_log_prob(logit: Tensor, action: Tensor) -> Tensor:
    """(B, A), (B,) -> (B,)."""
    picked = logit.gather(-1, action.long().unsqueeze(-1)).squeeze(-1)
    return picked - logit.logsumexp(dim=-1)


def categorical_log_prob_entropy(logit: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probability of the action and entropy, (B,) each, from one softmax."""
    log_prob = F.log_softmax(logit, dim=-1)
    entropy = -(log_prob.exp() * log_prob).sum(dim=-1)
    return log_prob.gather(-1, action.long().unsqueeze(-1)).squeeze(-1), entropy


def gaussian_log_prob(mu: Tensor, sigma: Tensor, action: Tensor) -> Tensor:
    """Diagonal Gaussian: (B, A) each -> (B,)."""
    z = (action - mu) / sigma
    return -(0.5 * z.square() + sigma.log() + _LOG_SQRT_2PI).sum(dim=-1)


def gaussian_entropy(sigma: Tensor) -> Tensor:
    """(B, A) -> (B,)."""
    return (sigma.log() + 0.5 + _LOG_SQRT_2PI).sum(dim=-1)


def tanh_gaussian_sample(mu: Tensor, sigma: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Reparameterised action tanh(u) in (-1, 1) and its log-probability (B,); `noise` is normal.

    log(1 - tanh(u)^2) is written as 2 (log 2 - u - softplus(-2u)): finite where tanh saturates.
    """
    u = torch.addcmul(mu, sigma, noise)
    # By factors that are arguments, not operands: torch makes a tensor of every number beside one.
    half = torch.add(u, F.softplus(u, beta=-2.0), alpha=-2.0)
    half = torch.addcmul(half, noise, noise, value=-0.25)
    log_prob = (half + half - sigma.log()).sum(dim=-1)
    return torch.tanh(u), log_prob - mu.shape[-1] * (_LOG_SQRT_2PI + 2.0 * math.log(2.0))


def categorical_entropy(logit: Tensor) -> Tensor:
    """(B, A) -> (B,)."""
    log_prob = F.log_softmax(logit, dim=-1)
    return -(log_prob.exp() * log_prob).sum(dim=-1)


def categorical_kl(logit: Tensor, other: Tensor) -> Tensor:
    """KL(first || second), (B, A) each -> (B,)."""
    log_prob, log_other = F.log_softmax(logit, dim=-1), F.log_softmax(other, dim=-1)
    return (log_prob.exp() * (log_prob - log_other)).sum(dim=-1)


def categorical_sample(logit: Tensor) -> Tensor:
    """(B, A) -> (B,): the largest logit after Gumbel noise is a draw from the softmax."""
    return (logit + gumbel_noise(logit)).argmax(dim=-1)


def gumbel_noise(like: Tensor) -> Tensor:
    return -torch.empty_like(like).exponential_().log()


def gaussian_kl(mu: Tensor, sigma: Tensor, other_mu: Tensor, other_sigma: Tensor) -> Tensor:
    """KL(first || second) of diagonal Gaussians, (B, A) each -> (B,)."""
    ratio, shift = sigma / other_sigma, (mu - other_mu) / other_sigma
    return (0.5 * (ratio.square() + shift.square() - 1.0) - ratio.log()).sum(dim=-1)


def tanh_gaussian_log_prob(mu: Tensor, sigma: Tensor, action: Tensor) -> Tensor:
    """Log-probability (B,) of actions in (-1, 1) that were drawn as tanh of a Gaussian."""
    # Just inside the border: atanh(1) is infinite, and float32 rounds tanh(10) to 1.
    edge = 1.0 - torch.finfo(action.dtype).eps
    u = action.clamp(-edge, edge).atanh()
    log_slope = 2.0 * (math.log(2.0) - u - F.softplus(-2.0 * u))
    return gaussian_log_prob(mu, sigma, u) - log_slope.sum(dim=-1)


class CategoricalPd:
    """A categorical distribution over logits (B, A), in the established interface."""

    def __init__(self, logits: Tensor | None = None) -> None:
        if logits is not None:
            self.update_logits(logits)

    def update_logits(self, logits: Tensor) -> None:
        self.logits = logits

    def neglogp(self, x: Tensor, reduction: str = "mean") -> Tensor:
        """Negative log-probability; `reduction` is 'mean' or 'none'."""
        # Of flat rows: cross entropy takes the second axis for that of the classes.
        flat = self.logits.reshape(-1, self.logits.shape[-1])
        loss = F.cross_entropy(flat, x.long().reshape(-1), reduction=reduction)
        return loss if reduction == "mean" else loss.reshape(x.shape)

    def entropy(self, reduction: str | None = None) -> Tensor:
        entropy = categorical_entropy(self.logits)
        return entropy if reduction is None else entropy.mean()

    def mode(self) -> Tensor:
        return self.logits.argmax(dim=-1)

    def sample(self) -> Tensor:
        return categorical_sample(self.logits)

    def noise_mode(self, noise_ratio: float = 1.0) -> Tensor:
        """The mode after `noise_ratio` times Gumbel noise: 0 is the mode, 1 a sample."""
        return (self.logits + noise_ratio * gumbel_noise(self.logits)).argmax(dim=-1)
