"""Actor-critic with experience replay, https://arxiv.org/abs/1611.01224.

Letters in shapes: T time, B batch, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

EPS = 1e-8


def acer_policy_error(
    q_values: Tensor,
    q_retraces: Tensor,
    v_pred: Tensor,
    target_pi: Tensor,
    actions: Tensor,
    ratio: Tensor,
    c_clip_ratio: float = 10.0,
) -> tuple[Tensor, Tensor]:
    """(T, B, 1) each, to be maximised: the objective with truncated weights, and its correction.

    `q_values`, `target_pi` and `ratio` are (T, B, A), `q_retraces` and `v_pred` (T, B, 1),
    `actions` (T, B). Equation 7 of the paper; only log-probabilities carry a gradient.
    """
    index = actions.long().unsqueeze(-1)
    log_pi = (target_pi + EPS).log()
    with torch.no_grad():
        truncated = ratio.gather(-1, index).clamp(max=c_clip_ratio) * (q_retraces - v_pred)
        surplus = (1 - c_clip_ratio / (ratio + EPS)).clamp(min=0)
        correction = surplus * target_pi * (q_values - v_pred)
    return truncated * log_pi.gather(-1, index), (correction * log_pi).sum(dim=-1, keepdim=True)


def acer_value_error(q_values: Tensor, q_retraces: Tensor, actions: Tensor) -> Tensor:
    """(T, B, 1): half the squared error of Q(s, a) (T, B, A) against its retrace (T, B, 1)."""
    return 0.5 * (q_retraces - q_values.gather(-1, actions.long().unsqueeze(-1))).square()


def acer_trust_region_update(
    actor_gradients: Sequence[Tensor],
    target_logit: Tensor,
    avg_logit: Tensor,
    trust_region_value: float,
) -> list[Tensor]:
    """Gradients (T, B, A) by the logarithm of the policy, held within a KL of the average policy.

    Logits are log-probabilities. Equation 12 of the paper: the part that drives the policies apart
    by more than `trust_region_value` is taken out. `target_logit` is accepted for older callers:
    the gradient of the KL by the logarithm of the policy does not depend on it.
    """
    with torch.no_grad():
        pull = avg_logit.exp()
        norm = pull.square().sum(dim=-1, keepdim=True)

        def within(gradient: Tensor) -> Tensor:
            excess = (gradient * pull).sum(dim=-1, keepdim=True) - trust_region_value
            return gradient - (excess / norm).clamp(min=0) * pull

        return [within(gradient) for gradient in actor_gradients]
