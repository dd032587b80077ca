"""C51: DQN that learns how returns are distributed, as probabilities of fixed atoms.

Bellemare et al. 2017, https://arxiv.org/abs/1707.06887

Letters in shapes: B batch, A actions, K atoms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from ding.policy.config import at_least
from ding.policy.distributional import log_distribution, mean_and_metrics
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.rl_utils.td import at_action
from ding.rl_utils.td_dist import categorical_target, cross_entropy
from ding.utils.batch import Batch
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class C51Config(DQNConfig):
    model: dict[str, Any] = field(default_factory=lambda: dict(v_min=-10.0, v_max=10.0, n_atom=51))
    """Arguments of the model; returns beyond v_min and v_max count as these."""

    def __post_init__(self) -> None:
        super().__post_init__()
        v_min, v_max = self.model["v_min"], self.model["v_max"]
        if not v_min < v_max:
            raise ConfigError(
                f"policy.model.v_min = {v_min} is not below policy.model.v_max = {v_max}; "
                "set the smallest and the largest return that can occur"
            )
        at_least("policy.model.n_atom", self.model["n_atom"], 2)


class C51Policy(DQNPolicy):
    config_class: ClassVar[type] = C51Config
    cfg: C51Config

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "c51dqn"

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"])
        next_output, next_action = self._next(batch)
        log_p = at_action(log_distribution(output), batch["action"])  # (B, K)
        next_p = at_action(next_output["distribution"], next_action)
        v_min, v_max = self.cfg.model["v_min"], self.cfg.model["v_max"]
        m = categorical_target(batch["reward"], batch["discount"], next_p, v_min, v_max)
        loss = cross_entropy(log_p, m)
        return mean_and_metrics(loss, batch, output, next_output, next_action)
