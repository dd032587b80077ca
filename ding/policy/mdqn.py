"""Munchausen DQN: soft values, and rewards that gain what the policy thinks of the action taken.

Vieillard et al. 2020, https://arxiv.org/abs/2007.14430

Letters in shapes: B batch, A actions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ding.policy.actions import masked_logits
from ding.policy.config import at_least, within
from ding.policy.dqn import DQNConfig, DQNPolicy
from ding.policy.sql import SoftLearnConfig
from ding.rl_utils.td import (
    at_action,
    munchausen_bonus,
    soft_value,
    td_target,
    weighted_mean,
)
from ding.utils.batch import Batch
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MDQNConfig(DQNConfig):
    entropy_tau: float = 0.03
    """Temperature of the policy softmax(Q / tau); in units of the reward."""
    m_alpha: float = 0.9
    """Share of tau log pi(a|s) that the reward gains."""
    learn: SoftLearnConfig = field(default_factory=SoftLearnConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.entropy_tau", self.entropy_tau, 1e-8)
        within("policy.m_alpha", self.m_alpha, 0, 1)
        if self.nstep != 1:
            raise ConfigError(
                f"policy.nstep = {self.nstep}: every reward gains by the policy at its own step, "
                "which a sum of rewards has lost; use nstep = 1"
            )


class MDQNPolicy(DQNPolicy):
    config_class = MDQNConfig
    cfg: MDQNConfig

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        q = self._model(batch["obs"])["logit"]  # (B, A)
        tau, alpha = self.cfg.entropy_tau, self.cfg.m_alpha
        with torch.no_grad():
            target_q = masked_logits(self._target.module(batch["obs"]))
            next_q = masked_logits(self._target.module(batch["next_obs"]))
            bonus = munchausen_bonus(target_q, batch["action"], tau)
            reward = batch["reward"] + alpha * bonus.clamp(-1, 0)
            target = td_target(reward, batch["discount"], soft_value(next_q, tau))
            best, second = target_q.topk(2, dim=-1).values.unbind(-1)
        td_error = target - at_action(q, batch["action"])
        metrics = {
            "q_value": q.detach().mean(),
            "action_gap": (best - second).mean(),
            "clip_frac": (bonus < -1).float().mean(),
            "priority": td_error.detach().abs(),
        }
        return weighted_mean(td_error.square(), batch.get("weight")), metrics

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss", "q_value", "action_gap", "clip_frac"]
