"""Importance-sampling weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ding.torch_utils.distribution import categorical_log_prob, gaussian_log_prob
from ding.utils.errors import nearest

Output = Tensor | Mapping[str, Tensor]
ACTION_SPACES = ("discrete", "continuous")


def compute_importance_weights(
    target_output: Output,
    behaviour_output: Output,
    action: Tensor,
    action_space_type: str = "discrete",
    requires_grad: bool = False,
) -> Tensor:
    """(T, B): how much likelier the action is under the target than under the behaviour policy.

    Outputs are logits (T, B, A), or `{'mu', 'sigma'}` of (T, B, A) with actions (T, B, A).
    """
    with torch.set_grad_enabled(requires_grad):
        target = action_log_prob(target_output, action, action_space_type)
        return (target - action_log_prob(behaviour_output, action, action_space_type)).exp()


def action_log_prob(output: Output, action: Tensor, action_space_type: str) -> Tensor:
    """(T, B), of logits or of a diagonal Gaussian."""
    if action_space_type == "discrete" and isinstance(output, Tensor):
        return categorical_log_prob(output, action)
    if action_space_type == "continuous" and not isinstance(output, Tensor):
        mu = output["mu"]
        return gaussian_log_prob(mu, output["sigma"], action.reshape(mu.shape))
    if action_space_type in ACTION_SPACES:
        raise TypeError(
            f"a {action_space_type} policy's output cannot be a {type(output).__name__}: "
            "give a tensor of logits for 'discrete', {'mu', 'sigma'} for 'continuous'"
        )
    hint = nearest(action_space_type, ACTION_SPACES)
    raise ValueError(f"unknown action_space_type '{action_space_type}'{hint}")
