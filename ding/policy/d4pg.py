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
from ding.rl_utils.td_dist import dist_nstep_td_data, dist_nstep_td_error
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
        only = torch.zeros_like(reward, dtype=torch.long)  # there is one distribution, (B, 1, K)
        data = dist_nstep_td_data(
            dist=output["distribution"],
            next_n_dist=after["distribution"],
            act=only,
            next_n_act=only,
            reward=reward.unsqueeze(0),
            done=torch.zeros_like(reward),  # `discount` says it already
            weight=batch.get("weight"),
        )
        n_atom = output["distribution"].shape[-1]
        loss, cross_entropy = dist_nstep_td_error(
            data, 1.0, self._v_min, self._v_max, n_atom, value_gamma=discount
        )
        metrics = {
            "q_value": output["q_value"].detach().mean(),
            "target_q_value": (reward + discount * after["q_value"].squeeze(-1)).mean(),
            "priority": cross_entropy.detach(),
        }
        return loss, metrics
