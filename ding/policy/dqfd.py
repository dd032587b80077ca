"""DQfD: DQN that begins with an expert's steps and keeps its actions above all others there.

Hester et al. 2018, https://arxiv.org/abs/1704.03732

Letters in shapes: B batch, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ding.policy.actions import masked_logits
from ding.policy.config import at_least
from ding.policy.dqn import DQNConfig, DQNLearnConfig, DQNOtherConfig, DQNPolicy
from ding.rl_utils.td import at_action, weighted_mean
from ding.utils.batch import Batch
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MarginLossConfig:
    """Weights of what is added to the n-step or one-step error."""

    lambda1: float = 1.0
    """Weight of the n-step error beside the one-step one."""
    lambda2: float = 1.0
    """Weight of the margin loss."""
    lambda3: float = 1e-5
    """Weight of the squared weights of the network."""
    margin_function: float = 0.8
    """By how much an expert's action is to be above all others."""
    expert_priority: float = 1.0
    """Added to the priorities of an expert's steps."""


@dataclass(frozen=True, kw_only=True)
class DQFDLearnConfig(MarginLossConfig, DQNLearnConfig):
    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lambda1", "lambda2", "lambda3", "margin_function", "expert_priority"):
            at_least(f"policy.learn.{name}", getattr(self, name), 0)


@dataclass(frozen=True, kw_only=True)
class DQFDOtherConfig(DQNOtherConfig):
    replay_buffer: dict[str, Any] = field(
        default_factory=lambda: {"type": "advanced", "one_step": True}
    )
    """Settings of the replay buffer; that of the demonstrations has the same."""


@dataclass(frozen=True, kw_only=True)
class DQFDConfig(DQNConfig):
    discount_factor: float = 0.99
    nstep: int = 10
    priority: bool = True
    priority_IS_weight: bool = True  # noqa: N815 (established key)
    learn: DQFDLearnConfig = field(default_factory=DQFDLearnConfig)
    other: DQFDOtherConfig = field(default_factory=DQFDOtherConfig)


class DQFDPolicy(DQNPolicy):
    config_class: ClassVar[type] = DQFDConfig
    cfg: DQFDConfig

    @staticmethod
    def check_config(cfg: Any) -> None:
        check_learns_from_expert(cfg)
        DQNPolicy.check_config(cfg)
        if not cfg["policy"]["other"]["replay_buffer"].get("one_step"):
            raise ConfigError(
                f"policy '{cfg['policy']['type']}' learns from one step beside several; set "
                "policy.other.replay_buffer.one_step = True"
            )

    def _init_learn(self) -> None:
        super()._init_learn()
        learn = self.cfg.learn
        self._optimizer.param_groups[0]["weight_decay"] = learn.lambda3

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """J = J_1 + lambda1 J_n + lambda2 J_E of the paper; the optimizer adds lambda3 J_L2."""
        learn = self.cfg.learn
        q_all = masked_logits(self._model(batch["obs"]))  # (B, A)
        q = at_action(q_all, batch["action"])
        error_n = self._target_q(batch) - q
        error_1 = self._target_q(one_step(batch)) - q
        is_expert = of_expert(batch, q)
        margin = margin_loss(q_all, batch["action"], learn.margin_function)
        loss = error_1.square() + learn.lambda1 * error_n.square()
        loss = loss + learn.lambda2 * is_expert * margin
        metrics = {
            "q_value": q.detach().mean(),
            "target_q_value": (error_n + q).detach().mean(),
            "margin_loss": (is_expert * margin).detach().sum() / is_expert.sum().clamp(min=1),
            "priority": error_n.detach().abs() + learn.expert_priority * is_expert,
        }
        return weighted_mean(loss, batch.get("weight")), metrics

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), "margin_loss"]


def one_step(batch: Batch) -> Batch:
    """The batch with the columns of one step in place of those of several, where there are any."""
    if "reward_1" not in batch:
        return batch
    return {**batch, **{name: batch[f"{name}_1"] for name in ("reward", "next_obs", "discount")}}


def of_expert(batch: Batch, like: Tensor) -> Tensor:
    """(B,) 1 for steps of an expert: drawn as its, or marked so by who made the samples."""
    if "source" in batch:
        return (batch["source"] == 1).to(like.dtype)
    if "is_expert" in batch:
        return batch["is_expert"].to(like.dtype)
    return torch.zeros(len(batch["reward"]), dtype=like.dtype, device=like.device)


def margin_loss(q: Tensor, action: Tensor, margin: float) -> Tensor:
    """(B,) of q (B, A): max over a of Q(s, a) + margin [a is not the expert's], minus Q(s, a_E)."""
    above = torch.full_like(q, margin).scatter(-1, action.long().unsqueeze(-1), 0.0)
    return (q + above).amax(dim=-1) - at_action(q, action)


def check_learns_from_expert(cfg: Any) -> None:
    """Refuse to run without demonstrations."""
    policy: Mapping[str, Any] = cfg["policy"]
    if policy["other"].get("demonstrations") is None:
        raise ConfigError(
            f"policy '{policy['type']}' needs demonstrations; set policy.other.demonstrations = "
            "dict(path='FILE', share=0.25, pretrain=1000), or use the policy without them"
        )
