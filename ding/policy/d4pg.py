"""D4PG: DDPG whose critic learns the distribution of the return, with n-step targets.

Barth-Maron et al. 2018, https://arxiv.org/abs/1804.08617

Letters in shapes: B batch, K atoms between `v_min` and `v_max`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ding.policy.ddpg import DDPGConfig, DDPGPolicy
from ding.policy.distributional import log_distribution
from ding.rl_utils.td import td_target, weighted_mean
from ding.rl_utils.td_dist import categorical_target, cross_entropy
from ding.utils.batch import Batch


@dataclass(frozen=True, kw_only=True)
class D4PGConfig(DDPGConfig):
    nstep: int = 3
    priority: bool = True
    priority_IS_weight: bool = True  # noqa: N815 (established key)


class D4PGPolicy(DDPGPolicy):
    """The atoms (`v_min`, `v_max`, `n_atom`) belong to `policy.model`; returns must fit in."""

    config_class = D4PGConfig
    cfg: D4PGConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "qac_dist"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"v_min": -10.0, "v_max": 10.0}

    def _init_learn(self) -> None:
        super()._init_learn()
        atoms = {**self._model_defaults(self._cfg), **self._cfg.model}
        self._v_min, self._v_max = float(atoms["v_min"]), float(atoms["v_max"])

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        x = {"obs": batch["obs"], "action": batch["action"]}
        output = self._model(x, mode="compute_critic")
        with torch.no_grad():
            next_x = {"obs": batch["next_obs"], "action": self._next_action(batch)}
            after = self._target.module(next_x, mode="compute_critic")
        reward, discount = batch["reward"], batch["discount"]
        log_p = log_distribution(output).squeeze(1)  # (B, 1, K) before
        next_p = after["distribution"].squeeze(1)
        target = categorical_target(reward, discount, next_p, self._v_min, self._v_max)
        loss = cross_entropy(log_p, target)
        next_q = after["q_value"].squeeze(-1)
        metrics = {
            "q_value": output["q_value"].detach().mean(),
            "target_q_value": td_target(reward, discount, next_q).mean(),
            "priority": loss.detach(),
        }
        return weighted_mean(loss, batch.get("weight")), metrics
