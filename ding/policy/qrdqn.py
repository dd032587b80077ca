"""QR-DQN: DQN that learns the quantiles of returns at fixed fractions.

Dabney et al. 2018, https://arxiv.org/abs/1710.10044

Letters in shapes: B batch, A actions, N quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ding.policy.config import at_least
from ding.policy.distributional import QuantileLearnConfig, mean_and_metrics
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.rl_utils.td import at_action, td_target
from ding.rl_utils.td_dist import quantile_huber
from ding.utils.batch import Batch


@dataclass(frozen=True, kw_only=True)
class QRDQNConfig(DQNConfig):
    model: dict[str, Any] = field(default_factory=lambda: dict(num_quantiles=32))
    """Arguments of the model."""
    learn: QuantileLearnConfig = field(default_factory=QuantileLearnConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.model.num_quantiles", self.model["num_quantiles"], 1)


class QRDQNPolicy(DQNPolicy):
    config_class = QRDQNConfig
    cfg: QRDQNConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "qrdqn"

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"])
        next_output, next_action = self._next(batch)
        theta = at_action(output["q"], batch["action"])  # (B, N)
        next_theta = at_action(next_output["q"], next_action)
        target = td_target(batch["reward"], batch["discount"], next_theta)
        tau_hat = output["tau"].reshape(-1, theta.shape[-1])
        loss = quantile_huber(theta, target, tau_hat, self.cfg.learn.kappa)
        return mean_and_metrics(loss, batch, output, next_output, next_action)
