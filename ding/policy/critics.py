"""Critics: values, losses and parameters, for algorithms with an actor and action values.

Letters in shapes: C critics (one, or two that hold each other's optimism down), B batch, A actions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ding.torch_utils import TargetNetwork


def critic_values(model: nn.Module, x: Any) -> Tensor:
    """Values of all critics: (C, B) or (C, B, A)."""
    if "compute_critics" in getattr(model, "modes", ()):
        return model(x, mode="compute_critics")["q_value"]
    q = model(x, mode="compute_critic")["q_value"]
    return torch.stack(q) if isinstance(q, list) else q.unsqueeze(0)


def first_critic_value(model: nn.Module, x: Any) -> Tensor:
    """Values (B,) of the first critic; models that can do so leave the other one out."""
    if "compute_first_critic" in getattr(model, "modes", ()):
        return model(x, mode="compute_first_critic")["q_value"]
    return critic_values(model, x)[0]


def squared_td_loss(
    q: Tensor, target: Tensor, weight: Tensor | None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Weighted squared error of `q` (C, B) against `target` (B,), summed over the critics."""
    td_error = q - target
    squared = td_error.square() if weight is None else weight * td_error.square()
    metrics = {"target_q_value": target.mean(), "priority": td_error.detach().abs().mean(dim=0)}
    return squared.mean(dim=1).sum(), metrics


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters of the critic (a shared encoder too), and those of the actor alone."""
    named = list(model.named_parameters(remove_duplicate=False))
    of_critic = {id(p) for name, p in named if name.startswith("critic")}
    critic = [p for p in model.parameters() if id(p) in of_critic]
    actor = [p for p in model.parameters() if id(p) not in of_critic]
    return critic, actor


def slow_target(model: nn.Module, freq: int | None, theta: float | None) -> TargetNetwork:
    """The target network of these settings; if neither is set, it moves by 0.005 each time."""
    return TargetNetwork(model, freq=freq, theta=0.005 if freq is None and theta is None else theta)
