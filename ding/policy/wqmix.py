"""Weighted QMIX: a monotonic value of the team that counts most where joint actions are good.

Rashid et al. 2020, https://arxiv.org/abs/2006.10800

Letters in shapes: T steps of a sequence, B batch, A agents, M actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ding.model.action_mask import masked
from ding.model.agents import alive_of, mask_of
from ding.policy.config import within
from ding.policy.qmix import QMIXConfig, QMIXLearnConfig, QMIXPolicy, Steps
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class WQMIXLearnConfig(QMIXLearnConfig):
    wqmix_ow: bool = True
    """Weigh optimistically: full weight where the target is above the value (OW-QMIX); False: where
    the joint action is the best one, or better than that (CW-QMIX)."""
    alpha: float = 0.5
    """Weight of all other steps."""
    w: float | None = None
    """Established name of alpha; set one of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = "alpha" if self.w is None else "w"
        within(f"policy.learn.{name}", getattr(self, name), 0, 1)
        if self.w not in (None, self.alpha) and self.alpha != 0.5:
            raise ConfigError(
                f"policy.learn.w = {self.w} and alpha = {self.alpha} are two names of one setting; "
                "set one of them"
            )


@dataclass(frozen=True, kw_only=True)
class WQMIXConfig(QMIXConfig):
    learn: WQMIXLearnConfig = field(default_factory=WQMIXLearnConfig)


class WQMIXPolicy(QMIXPolicy):
    """QMIX whose targets come from an unrestricted Q*, and whose errors are weighted.

    Agents act by the monotonic mixture; Q* learns beside it, with agents and a mixer of its own.
    """

    config_class: ClassVar[type] = WQMIXConfig
    cfg: WQMIXConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "wqmix"

    def _values(self, model: Any, obs: Any, memory: Tensor | None) -> dict[str, Tensor]:
        q, star, _ = model.both(obs, memory)
        return {"q": q, "star": star}

    def _value(self, model: Any, steps: Steps) -> Tensor:
        return model.star(steps.values["star"], steps.action, steps.obs)

    def _errors(self, steps: Steps, target: Tensor) -> tuple[Tensor, Tensor]:
        model: Any = self._model
        q_taken = model.team(steps.values["q"], steps.action, steps.obs)
        of_star = (target - self._value(model, steps)).square()
        return q_taken, self._weight(steps, target, q_taken) * (target - q_taken).square() + of_star

    @torch.no_grad()
    def _weight(self, steps: Steps, target: Tensor, q_taken: Tensor) -> Tensor:
        """(T, B): equations 8 (OW) and 10 (CW) of the paper."""
        learn = self.cfg.learn
        other = learn.alpha if learn.w is None else learn.w
        if learn.wqmix_ow:
            return torch.where(target > q_taken, 1.0, other)
        best = masked(steps.values["q"], mask_of(steps.obs)).argmax(dim=-1)
        of_best = self._value(self._model, steps._replace(action=best))
        same, alive = best == steps.action, alive_of(steps.obs)
        same = same if alive is None else same | (alive == 0)
        return torch.where(same.all(dim=-1) | (target > of_best), 1.0, other)
