"""Between the batches of a policy and the distributional losses of `rl_utils`.

Letters in shapes: B batch, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ding.policy.config import at_least
from ding.policy.dqn import DQNLearnConfig
from ding.rl_utils.td import picked
from ding.utils.batch import Batch


@dataclass(frozen=True, kw_only=True)
class QuantileLearnConfig(DQNLearnConfig):
    kappa: float = 1.0
    """Errors above this count linearly, below it by their square."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.kappa", self.kappa, 1e-6)


def td_columns(batch: Batch) -> dict[str, Any]:
    """`reward` (1, B), `done` and `weight` of a batch whose rewards are n-step sums already.

    Nothing is `done`: `discount`, which the losses take as `value_gamma`, is zero at terminations.
    """
    reward = batch["reward"]
    return {
        "reward": reward.unsqueeze(0),
        "done": torch.zeros_like(reward),
        "weight": batch.get("weight"),
    }


def td_metrics(
    batch: Batch,
    output: dict[str, Tensor],
    next_output: dict[str, Tensor],
    next_action: Tensor,
    loss: Tensor,
) -> dict[str, Tensor]:
    """Mean values and targets as of DQN; the loss (B,) of a sample is its priority."""
    q = picked(output["logit"].detach(), batch["action"])
    next_q = picked(next_output["logit"], next_action)
    return {
        "q_value": q.mean(),
        "target_q_value": (batch["reward"] + batch["discount"] * next_q).mean(),
        "priority": loss.detach(),
    }
