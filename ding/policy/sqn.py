"""Soft Q-network: soft Q-learning with twin networks and a learned temperature.

Haarnoja et al. 2017, https://arxiv.org/abs/1702.08165
Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905

SAC for discrete actions without an actor: the policy is softmax(min(Q1, Q2) / alpha).
Letters in shapes: B batch, N envs, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ding.policy.actions import masked_logits
from ding.policy.config import LearnConfig, unused
from ding.policy.critics import squared_td_loss
from ding.policy.dqn import DQNCollectConfig, DQNOtherConfig, EpsConfig
from ding.policy.sql import SQLConfig, SQLLearnConfig, SQLPolicy
from ding.policy.temperature import Temperature
from ding.rl_utils.td import at_action, soft_value, td_target
from ding.torch_utils import Adam, GradientStep
from ding.torch_utils.distribution import categorical_entropy
from ding.utils.batch import Batch


@dataclass(frozen=True, kw_only=True)
class SQNLearnConfig(SQLLearnConfig):
    update_per_collect: int = 16
    learning_rate_q: float = 1e-3
    learning_rate_alpha: float = 1e-3
    target_theta: float | None = 0.005
    alpha: float = 0.2
    """Temperature; with auto_alpha where it starts."""
    auto_alpha: bool = True
    """Learn alpha such that the entropy stays at target_entropy."""
    target_entropy: float = 0.2
    """In nats; that of even chances among A actions is log A."""

    def __post_init__(self) -> None:
        super().__post_init__()
        instead = "policy.learn.learning_rate_q"
        unused("policy.learn.learning_rate", self.learning_rate, LearnConfig.learning_rate, instead)


@dataclass(frozen=True, kw_only=True)
class SQNCollectConfig(DQNCollectConfig):
    n_sample: int | None = 16


@dataclass(frozen=True, kw_only=True)
class SQNOtherConfig(DQNOtherConfig):
    eps: EpsConfig = field(default_factory=lambda: EpsConfig(start=0.0, end=0.0))
    """Random actions besides those of the policy, which explores by itself."""


@dataclass(frozen=True, kw_only=True)
class SQNConfig(SQLConfig):
    discount_factor: float = 0.99
    learn: SQNLearnConfig = field(default_factory=SQNLearnConfig)
    collect: SQNCollectConfig = field(default_factory=SQNCollectConfig)
    other: SQNOtherConfig = field(default_factory=SQNOtherConfig)


class SQNPolicy(SQLPolicy):
    config_class = SQNConfig
    cfg: SQNConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "sqn"

    def _init_acting(self) -> None:
        self._temperature = Temperature(self.cfg.learn.alpha).to(self._device)
        self.acting_parts["temperature"] = self._temperature  # collecting draws by it

    @property
    def _alpha(self) -> float:
        return self._temperature.alpha.item()

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = Adam(
            self._model.parameters(),
            lr=learn.learning_rate_q,
            grad_clip_type=learn.grad_clip_type,
            clip_value=learn.grad_clip_value,
        )
        self._alpha_optimizer = Adam(self._temperature.parameters(), lr=learn.learning_rate_alpha)
        self._target = self._new_target()
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {
            "target": self._target,
            "optimizer": self._optimizer,
            "optimizer_alpha": self._alpha_optimizer,
        }

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        batch = self._batch(data)
        batch["alpha"] = self._temperature.alpha.detach()
        loss, metrics = self._step(batch)
        if self.cfg.learn.auto_alpha:
            self._alpha_optimizer.step_with(metrics["entropy"] - self.cfg.learn.target_entropy)
        self._target.update()
        learning_rate = self._optimizer.param_groups[0]["lr"]
        return {"cur_lr_q": learning_rate, "total_loss": loss, "alpha": batch["alpha"], **metrics}

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"])
        q = torch.stack(output["q_value"])  # (2, B, A)
        taken = at_action(q, batch["action"].expand(len(q), -1))  # (2, B)
        loss, metrics = squared_td_loss(taken, self._target_q(batch), batch.get("weight"))
        entropy = categorical_entropy(masked_logits(output).detach() / batch["alpha"])
        return loss, {"q_value": q.detach().mean(), "entropy": entropy.mean(), **metrics}

    @torch.no_grad()
    def _target_q(self, batch: Batch) -> Tensor:
        next_q = masked_logits(self._target.module(batch["next_obs"]))  # the smaller of two
        return td_target(batch["reward"], batch["discount"], soft_value(next_q, batch["alpha"]))

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr_q", "total_loss", "alpha", "entropy", "q_value", "target_q_value"]
