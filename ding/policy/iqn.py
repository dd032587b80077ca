"""IQN: DQN that learns the quantiles of returns at fractions drawn anew for every sample.

Dabney et al. 2018, https://arxiv.org/abs/1806.06923

Greedy actions, also those of targets, go by evenly spaced fractions: they are the same each time.
Letters in shapes: B batch, A actions, N quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ding.model.value_head import midpoints
from ding.policy.acting import acting_model, eval_view
from ding.policy.actions import masked_logits
from ding.policy.config import at_least
from ding.policy.distributional import QuantileLearnConfig, mean_and_metrics
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.rl_utils.td import at_action, td_target
from ding.rl_utils.td_dist import quantile_huber
from ding.utils.batch import Batch


@dataclass(frozen=True, kw_only=True)
class IQNConfig(DQNConfig):
    model: dict[str, Any] = field(default_factory=lambda: dict(num_quantiles=32))
    """Arguments of the model; num_quantiles are drawn for the values, as many for the targets."""
    learn: QuantileLearnConfig = field(default_factory=QuantileLearnConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.model.num_quantiles", self.model["num_quantiles"], 1)


class IQNPolicy(DQNPolicy):
    config_class = IQNConfig
    cfg: IQNConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "iqn"

    def _batch(self, data: Sequence[Any]) -> Batch:
        """Fractions are drawn here: the same numbers whether the loss is compiled or not."""
        batch = super()._batch(data)
        shape = (len(batch["reward"]), self.cfg.model["num_quantiles"])
        batch["tau"] = torch.rand(shape, device=self._device)
        batch["next_tau"] = torch.rand(shape, device=self._device)
        return batch

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"], tau=batch["tau"])
        next_output, next_action = self._next(batch)
        z = at_action(output["q"].permute(1, 2, 0), batch["action"])  # (N, B, A) -> (B, N)
        next_z = at_action(next_output["q"].permute(1, 2, 0), next_action)
        target = td_target(batch["reward"], batch["discount"], next_z)
        loss = quantile_huber(z, target, batch["tau"], self.cfg.learn.kappa)
        return mean_and_metrics(loss, batch, output, next_output, next_action)

    @torch.no_grad()
    def _next(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        next_obs, tau = batch["next_obs"], batch["next_tau"]
        picker = self._model if self.cfg.learn.double_q else self._target.module
        even = midpoints(tau.shape[1], tau).unsqueeze(0)
        action = masked_logits(picker(next_obs, tau=even)).argmax(dim=-1)
        return self._target.module(next_obs, tau=tau), action

    def _init_collect(self) -> None:
        self._q = acting_model(eval_view(self._model))

    def _init_eval(self) -> None:
        self._q = acting_model(eval_view(self._model))
