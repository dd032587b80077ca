"""CollaQ: values of agents alone, and what their allies add, as values of the team.

Zhang et al. 2020, https://arxiv.org/abs/2010.08531

Letters in shapes: T steps of a sequence, B batch, A agents, M actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from ding.model.agents import alive_of
from ding.policy.config import at_least
from ding.policy.dqn import EpsConfig
from ding.policy.qmix import QMIXConfig, QMIXLearnConfig, QMIXOtherConfig, QMIXPolicy, Steps
from ding.rl_utils.td import at_action


@dataclass(frozen=True, kw_only=True)
class CollaQLearnConfig(QMIXLearnConfig):
    target_update_theta: float | None = 0.001
    """Move the target network this fraction of the way after each update; None: copy instead ..."""
    collaq_loss_weight: float = 1.0
    """Weight of the values of collaboration with nobody, which are to be zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.collaq_loss_weight", self.collaq_loss_weight, 0)


@dataclass(frozen=True, kw_only=True)
class CollaQOtherConfig(QMIXOtherConfig):
    eps: EpsConfig = field(default_factory=lambda: EpsConfig(start=1.0, end=0.05, decay=200000))
    """Exploration."""


@dataclass(frozen=True, kw_only=True)
class CollaQConfig(QMIXConfig):
    learn: CollaQLearnConfig = field(default_factory=CollaQLearnConfig)
    other: CollaQOtherConfig = field(default_factory=CollaQOtherConfig)


class CollaQPolicy(QMIXPolicy):
    """QMIX of agents that see their allies apart; env.obs_alone = True shows them without."""

    config_class: ClassVar[type] = CollaQConfig
    cfg: CollaQConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "collaq"

    def _values(self, model: Any, obs: Any, memory: Tensor | None) -> dict[str, Tensor]:
        q, nobody, _ = model.parts(obs, memory)
        return {"q": q, "nobody": nobody}

    def _errors(self, steps: Steps, target: Tensor) -> tuple[Tensor, Tensor]:
        q_taken, error = super()._errors(steps, target)
        nobody = at_action(steps.values["nobody"], steps.action).square()  # (T, B, A)
        alive = alive_of(steps.obs)
        if alive is None:
            return q_taken, error + self.cfg.learn.collaq_loss_weight * nobody.mean(dim=-1)
        living = (nobody * alive).sum(dim=-1) / alive.sum(dim=-1).clamp(min=1)
        return q_taken, error + self.cfg.learn.collaq_loss_weight * living
