"""QTRAN: values of agents whose sum is largest where a free value of the joint action is.

Son et al. 2019, https://arxiv.org/abs/1905.05408 (QTRAN-base)

Letters in shapes: T steps of a sequence, B batch, A agents, M actions, H features of an agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor

from ding.model.action_mask import masked
from ding.model.agents import mask_of
from ding.policy.config import at_least
from ding.policy.qmix import QMIXConfig, QMIXLearnConfig, QMIXPolicy, Steps


@dataclass(frozen=True, kw_only=True)
class QTRANLearnConfig(QMIXLearnConfig):
    td_weight: float = 1.0
    """Weight of the error of the joint value against its target."""
    opt_weight: float = 0.01
    """Weight of what the sum of values is off by at the agents' best actions."""
    nopt_min_weight: float = 1e-4
    """Weight of what the sum is too low by at the actions taken."""
    double_q: bool = True
    """Let the online network pick the next actions, the target network value them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("td_weight", "opt_weight", "nopt_min_weight"):
            at_least(f"policy.learn.{name}", getattr(self, name), 0)


@dataclass(frozen=True, kw_only=True)
class QTRANConfig(QMIXConfig):
    learn: QTRANLearnConfig = field(default_factory=QTRANLearnConfig)


class QTRANPolicy(QMIXPolicy):
    """A joint value learns freely; the sum of the agents' values is brought into line with it.

    With Q' = sum_a Q_a and the joint value Q held fixed (equations 4, 5 and 6 of the paper):
    Q'(best) - Q(best) + V = 0, and Q'(u) - Q(u) + V >= 0 for every other joint action u.
    """

    config_class: ClassVar[type] = QTRANConfig
    cfg: QTRANConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "qtran"

    def _values(self, model: Any, obs: Any, memory: Tensor | None) -> dict[str, Tensor]:
        q, features, _ = model.unrolled(obs, memory)
        return {"q": q, "features": features}

    def _value(self, model: Any, steps: Steps) -> Tensor:
        return model.joint(steps.values["features"], steps.action, steps.obs)

    def _errors(self, steps: Steps, target: Tensor) -> tuple[Tensor, Tensor]:
        model, learn = self._model, self.cfg.learn
        joint = self._value(model, steps)
        best = masked(steps.values["q"], mask_of(steps.obs)).argmax(dim=-1)
        of_best = self._value(model, steps._replace(action=best))
        error = (
            learn.td_weight * (target - joint).square()
            + learn.opt_weight * self._gap(steps._replace(action=best), of_best).square()
            + learn.nopt_min_weight * self._gap(steps, joint).clamp(max=0).square()
        )
        return joint, error

    def _gap(self, steps: Steps, joint: Tensor) -> Tensor:
        """Q'(u) - Q(u) + V, (T, B)."""
        model: Any = self._model
        total = model.team(steps.values["q"], steps.action, steps.obs)
        return total - joint.detach() + model.of_state(steps.obs)
