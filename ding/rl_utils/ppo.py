"""Losses of proximal policy optimisation.

Schulman et al. 2017, https://arxiv.org/abs/1707.06347
Ye et al. 2020 (dual clip), https://arxiv.org/abs/1912.09729

Letters in shapes: B batch, A actions. `weight` None means ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ding.rl_utils.td import weighted_mean
from ding.torch_utils.distribution import categorical_log_prob_entropy

Logit = Tensor | Sequence[Tensor]


def clipped_surrogate(
    ratio: Tensor, advantage: Tensor, clip_ratio: float, dual_clip: float | None = None
) -> Tensor:
    """(B,): min(r A, clip(r, 1 - eps, 1 + eps) A), whose mean is L^CLIP, equation 7.

    `dual_clip` bounds it below by c A where the advantage A is negative.
    """
    objective = torch.min(
        ratio * advantage, ratio.clamp(1 - clip_ratio, 1 + clip_ratio) * advantage
    )
    return objective if dual_clip is None else bounded_below(objective, advantage, dual_clip)


def bounded_below(objective: Tensor, advantage: Tensor, dual_clip: float) -> Tensor:
    return torch.where(advantage < 0, torch.max(objective, dual_clip * advantage), objective)


def value_loss(
    value: Tensor,
    value_old: Tensor,
    return_: Tensor,
    clip_ratio: float | None = None,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the mean of (V(s) - V_targ)^2, L^VF of equation 9.

    With `clip_ratio` that of V held so near to `value_old`, where this is larger.
    """
    squared = (return_ - value).square()
    if clip_ratio is not None:
        clipped = value_old + (value - value_old).clamp(-clip_ratio, clip_ratio)
        squared = torch.max(squared, (return_ - clipped).square())
    return 0.5 * weighted_mean(squared, weight)


@torch.no_grad()
def ratio_statistics(log_ratio: Tensor, ratio: Tensor, clip_ratio: float) -> tuple[Tensor, Tensor]:
    """Approximate KL of the new policy from the old, and the share of ratios beyond the clip."""
    clipped = ((ratio - 1).abs() > clip_ratio).to(ratio.dtype)
    return -log_ratio.mean(), clipped.mean()


def log_prob_entropy(logit: Logit, action: Tensor | Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """(B,) each; several heads are independent, so theirs add up."""
    if isinstance(logit, Tensor):
        assert isinstance(action, Tensor)
        return categorical_log_prob_entropy(logit, action)
    actions = action.unbind(-1) if isinstance(action, Tensor) else action
    parts = [categorical_log_prob_entropy(o, a) for o, a in zip(logit, actions, strict=True)]
    log_probs, entropies = zip(*parts, strict=True)
    return torch.stack(log_probs).sum(dim=0), torch.stack(entropies).sum(dim=0)
