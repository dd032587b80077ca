"""Actions from the output of a policy network.

Letters in shapes: B batch, A actions (or dimensions of the action).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ding.torch_utils.distribution import categorical_sample


def _part(output: Any, name: str) -> Any:
    """Entry of a mapping, or attribute of an object."""
    return output[name] if isinstance(output, Mapping) else getattr(output, name)


class ArgmaxSampler:
    def __call__(self, logit: Tensor) -> Tensor:
        """(B, A) -> (B,)."""
        return logit.argmax(dim=-1)


class MultinomialSampler:
    def __call__(self, logit: Tensor) -> Tensor:
        """(B, A) -> (B,)."""
        return categorical_sample(logit)


class MuSampler:
    def __call__(self, logit: Any) -> Tensor:
        """(mu, sigma) of (B, A) each -> (B, A)."""
        return _part(logit, "mu")


class ReparameterizationSampler:
    def __call__(self, logit: Any) -> Tensor:
        """(mu, sigma) of (B, A) each -> (B, A), differentiable by both."""
        mu, sigma = _part(logit, "mu"), _part(logit, "sigma")
        return mu + sigma * torch.randn_like(mu)


class HybridStochasticSampler:
    """Output and action have `action_type` (discrete) and `action_args` (continuous)."""

    def __call__(self, logit: Any) -> dict[str, Tensor]:
        return {
            "action_type": MultinomialSampler()(_part(logit, "action_type")),
            "action_args": ReparameterizationSampler()(_part(logit, "action_args")),
        }


class HybridDeterminsticSampler:
    """`HybridStochasticSampler` without chance."""

    def __call__(self, logit: Any) -> dict[str, Tensor]:
        return {
            "action_type": ArgmaxSampler()(_part(logit, "action_type")),
            "action_args": MuSampler()(_part(logit, "action_args")),
        }
