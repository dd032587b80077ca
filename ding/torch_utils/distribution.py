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
    u = mu + sigma * noise
    log_normal = -0.5 * noise.square() - sigma.log() - _LOG_SQRT_2PI
    log_slope = 2.0 * (math.log(2.0) - u - F.softplus(-2.0 * u))
    return torch.tanh(u), (log_normal - log_slope).sum(dim=-1)
