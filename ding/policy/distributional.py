"""Settings and metrics that the algorithms on distributions of returns share.

Letters in shapes: B batch, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ding.policy.config import at_least
from ding.policy.dqn import DQNLearnConfig
from ding.rl_utils.td import at_action, td_target, weighted_mean
from ding.rl_utils.td_dist import log_of
from ding.utils.batch import Batch


@dataclass(frozen=True, kw_only=True)
class QuantileLearnConfig(DQNLearnConfig):
    kappa: float = 1.0
    """Errors above this count linearly, below it by their square."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.kappa", self.kappa, 1e-6)


def log_distribution(output: dict[str, Tensor]) -> Tensor:
    """(B, A, K): what the network says, or of its probabilities if it gives only those."""
    log_p = output.get("log_distribution")
    return log_of(output["distribution"]) if log_p is None else log_p


def mean_and_metrics(
    loss: Tensor,
    batch: Batch,
    output: dict[str, Tensor],
    next_output: dict[str, Tensor],
    next_action: Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Weighted mean of the loss (B,), and metrics as of DQN; a sample's loss is its priority."""
    q = at_action(output["logit"].detach(), batch["action"])
    next_q = at_action(next_output["logit"], next_action)
    metrics = {
        "q_value": q.mean(),
        "target_q_value": td_target(batch["reward"], batch["discount"], next_q).mean(),
        "priority": loss.detach(),
    }
    return weighted_mean(loss, batch.get("weight")), metrics
