"""R2D3: R2D2 with an expert's sequences in every batch.

Paine et al. 2019, https://arxiv.org/abs/1909.01387; the margin loss is that of DQfD, 0 in the
paper. Letters in shapes: T steps of a sequence, B batch, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ding.model import create_model
from ding.policy.config import at_least
from ding.policy.dqfd import check_learns_from_expert, margin_loss, of_expert
from ding.policy.r2d2 import R2D2Config, R2D2LearnConfig, R2D2Policy
from ding.policy.recurrent import recurrent_step
from ding.utils.batch import Batch, length, take, tree_map
from ding.utils.data.collate_fn import as_tensor


@dataclass(frozen=True, kw_only=True)
class R2D3LearnConfig(R2D2LearnConfig):
    lambda1: float = 1.0
    """Weight of the n-step error."""
    lambda2: float = 1.0
    """Weight of the margin loss."""
    lambda3: float = 1e-5
    """Weight of the squared weights of the network."""
    lambda_one_step_td: float = 1.0
    """Weight of the one-step error."""
    margin_function: float = 0.8
    """By how much an expert's action is to be above all others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("lambda1", "lambda2", "lambda3", "lambda_one_step_td", "margin_function"):
            at_least(f"policy.learn.{name}", getattr(self, name), 0)


@dataclass(frozen=True, kw_only=True)
class R2D3Config(R2D2Config):
    learn: R2D3LearnConfig = field(default_factory=R2D3LearnConfig)


class R2D3Policy(R2D2Policy):
    config_class: ClassVar[type] = R2D3Config
    cfg: R2D3Config

    @staticmethod
    def check_config(cfg: Any) -> None:
        check_learns_from_expert(cfg)
        R2D2Policy.check_config(cfg)

    @classmethod
    def expert_columns(cls, policy_cfg: Mapping[str, Any], steps: Batch) -> Batch:
        """What acting would have stored: a zero state before each step, which burn-in brings on."""
        with torch.random.fork_rng(devices=[]):
            settings = {"type": cls._model_name(policy_cfg), **policy_cfg["model"]}
            model = create_model({**cls._model_defaults(policy_cfg), **settings})
        obs = tree_map(as_tensor, take(steps["obs"], slice(1)))
        with torch.no_grad():
            zero = recurrent_step(model, obs, [None])[2]
        n_step = length(steps)
        state = tree_map(lambda leaf: np.zeros((n_step, *leaf.shape[1:]), leaf.dtype), zero)
        return {"begins": np.asarray(steps["episode_step"]) == 0, "prev_state": state}

    def _init_learn(self) -> None:
        super()._init_learn()
        self._optimizer.param_groups[0]["weight_decay"] = self.cfg.learn.lambda3

    def _step_errors(
        self, q: Tensor, q_taken: Tensor, obs: Any, mask: Tensor, batch: Batch
    ) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self.cfg.learn
        error, metrics = super()._step_errors(q, q_taken, obs, mask, batch)
        one_step = self._targets(q.detach(), obs, mask, batch, 1) - q_taken
        margin = margin_loss(q[:-1], batch["action"].T, learn.margin_function)
        margin = of_expert(batch, q) * margin  # (B,) flags for (T, B)
        error = learn.lambda1 * error + learn.lambda_one_step_td * one_step.square()
        return error + learn.lambda2 * margin, {**metrics, "margin_loss": margin.detach()}

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), "margin_loss"]
