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
from ding.policy.distributional import QuantileLearnConfig, td_columns, td_metrics
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.rl_utils.td_dist import qrdqn_nstep_td_data, qrdqn_nstep_td_error
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
        data = qrdqn_nstep_td_data(
            q=output["q"],  # (B, A, N)
            next_n_q=next_output["q"],
            action=batch["action"],
            next_n_action=next_action,
            **td_columns(batch),
            tau=output["tau"],
        )
        kappa = self.cfg.learn.kappa
        loss, per_sample = qrdqn_nstep_td_error(
            data, 1.0, value_gamma=batch["discount"], kappa=kappa
        )
        return loss, td_metrics(batch, output, next_output, next_action, per_sample)
