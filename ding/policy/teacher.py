"""Teacher: a trained policy that another one is kept close to while it learns, ever less.

Schmitt et al. 2018 (kickstarting), https://arxiv.org/abs/1803.03835. A behaviour clone as the
teacher makes it regularised behaviour cloning. Letters in shapes: B batch, A actions.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ding.policy.actions import masked_logits
from ding.policy.config import at_least
from ding.torch_utils.running_statistics import UpdateCount
from ding.utils.batch import Batch
from ding.utils.checkpoint import load_checkpoint
from ding.utils.errors import CheckpointError, ConfigError


@dataclass(frozen=True, kw_only=True)
class TeacherConfig:
    path: str = ""
    """Checkpoint of a policy with the same network: of an older run, or of a behaviour clone."""
    weight: float = 1.0
    """Weight of the divergence from the teacher at first ..."""
    weight_end: float = 0.0
    """... and what it falls to, linearly ..."""
    decay: int = 10_000
    """... within so many updates."""

    def __post_init__(self) -> None:
        if not self.path:
            raise ConfigError("policy.learn.teacher.path is missing: a checkpoint to learn from")
        for name in ("weight", "weight_end"):
            at_least(f"policy.learn.teacher.{name}", getattr(self, name), 0)
        at_least("policy.learn.teacher.decay", self.decay, 1)


class Teacher:
    """What the teacher would do in the states of a batch, and how far a policy is from it."""

    def __init__(self, cfg: TeacherConfig, model: nn.Module, mode: str | None) -> None:
        """`mode`: that of the model which gives its 'logit'."""
        self._cfg, self._mode = cfg, mode
        self._model = deepcopy(model).requires_grad_(False)
        self._updates = UpdateCount()
        weights = load_checkpoint(cfg.path).get("model")
        if weights is None:
            raise CheckpointError(f"'{cfg.path}' is no checkpoint of a policy: it has no 'model'")
        try:
            self._model.load_state_dict(weights)
        except RuntimeError as error:
            first = str(error).strip().splitlines()[-1].strip()
            raise CheckpointError(
                f"the teacher in '{cfg.path}' has another network than this policy: {first}"
            ) from error

    @property
    def weight(self) -> float:
        progress = min(self._updates.state_dict()["count"] / self._cfg.decay, 1.0)
        return self._cfg.weight + progress * (self._cfg.weight_end - self._cfg.weight)

    @torch.no_grad()
    def add_to(self, batch: Batch) -> Batch:
        """The batch with the teacher's logits and its weight in this update."""
        weight, mode = self.weight, {} if self._mode is None else {"mode": self._mode}
        self._updates.next()
        logit = masked_logits(self._model(batch["obs"], **mode))
        return {**batch, "teacher": logit, "teacher_weight": torch.tensor(weight)}

    def state_dict(self) -> dict[str, Any]:
        return self._updates.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._updates.load_state_dict(state)


def teaching_loss(batch: Batch, logit: Any) -> Tensor:
    """Weighted divergence of a policy's logits from the teacher's; 0 without a teacher."""
    return batch["teacher_weight"] * divergence(batch["teacher"], logit).mean()


def divergence(teacher: Any, logit: Any) -> Tensor:
    """(B,) KL(teacher || policy) of categorical logits, one or several, or normal {mu, sigma}."""
    if isinstance(teacher, tuple):
        return torch.stack([divergence(*pair) for pair in zip(teacher, logit, strict=True)]).sum(0)
    if isinstance(teacher, dict) and "action_type" in teacher:
        return torch.stack([divergence(teacher[key], logit[key]) for key in teacher]).sum(0)
    if isinstance(teacher, dict):
        return _normal_divergence(teacher["mu"], teacher["sigma"], logit["mu"], logit["sigma"])
    log_teacher, log_policy = teacher.log_softmax(dim=-1), logit.log_softmax(dim=-1)
    return (log_teacher.exp() * (log_teacher - log_policy)).sum(dim=-1)


def _normal_divergence(mu: Tensor, sigma: Tensor, other_mu: Tensor, other_sigma: Tensor) -> Tensor:
    ratio = (sigma / other_sigma).square()
    shift = ((mu - other_mu) / other_sigma).square()
    return 0.5 * (ratio + shift - 1 - ratio.log()).sum(dim=-1)


def teacher_of(policy_cfg: Any, model: nn.Module, mode: str | None) -> Teacher | None:
    """The teacher that a config names, if it does."""
    cfg = policy_cfg.learn.teacher
    if cfg is None:
        return None
    if policy_cfg.obs_norm:
        raise ConfigError(
            "policy.learn.teacher with policy.obs_norm = True: the teacher would see observations "
            "on another scale than it was trained with; leave one of them out"
        )
    return Teacher(cfg, model, mode)
