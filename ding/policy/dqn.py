"""DQN with double-Q targets, dueling heads, n-step returns and weights for prioritised replay.

Mnih et al. 2015, https://www.nature.com/articles/nature14236
van Hasselt et al. 2016, https://arxiv.org/abs/1509.06461
Wang et al. 2016, https://arxiv.org/abs/1511.06581

Letters in shapes: B batch, N envs, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ding.policy.acting import acting_model, epsilon_greedy
from ding.policy.actions import masked_logits
from ding.policy.base import Policy
from ding.policy.config import (
    CollectConfig,
    LearnConfig,
    OtherConfig,
    PolicyConfig,
    at_least,
    check_samples,
    one_of,
    within,
)
from ding.rl_utils.exploration import get_epsilon_greedy_fn
from ding.rl_utils.td import at_action, double_q_target, td_target, weighted_mean
from ding.torch_utils import Adam, GradientStep, TargetNetwork
from ding.utils.batch import Batch, ByEnv, stacked_of


@dataclass(frozen=True, kw_only=True)
class EpsConfig:
    type: str = "exp"
    """How epsilon falls with env steps: 'exp' or 'linear'."""
    start: float = 0.95
    end: float = 0.1
    decay: int = 10000
    """Env steps: to 1/e of the way ('exp'), or to the end ('linear')."""

    def __post_init__(self) -> None:
        one_of("policy.other.eps.type", self.type, ("exp", "linear"))
        within("policy.other.eps.start", self.start, 0, 1)
        within("policy.other.eps.end", self.end, 0, self.start)


@dataclass(frozen=True, kw_only=True)
class DQNLearnConfig(LearnConfig):
    update_per_collect: int = 3
    target_update_freq: int | None = None
    """Copy the weights to the target network every so many updates (100 if neither is set) ..."""
    target_theta: float | None = None
    """... or move it this fraction of the way after each. Set one at most."""
    double_q: bool = True
    """Let the online network pick the next action, the target network value it."""

    def __post_init__(self) -> None:
        if self.target_update_freq is not None:
            at_least("policy.learn.target_update_freq", self.target_update_freq, 1)
        if self.target_theta is not None:
            within("policy.learn.target_theta", self.target_theta, 0, 1)


@dataclass(frozen=True, kw_only=True)
class DQNCollectConfig(CollectConfig):
    n_sample: int | None = 8


@dataclass(frozen=True, kw_only=True)
class DQNOtherConfig(OtherConfig):
    eps: EpsConfig = field(default_factory=EpsConfig)
    """Exploration."""


@dataclass(frozen=True, kw_only=True)
class DQNConfig(PolicyConfig):
    discount_factor: float = 0.97
    learn: DQNLearnConfig = field(default_factory=DQNLearnConfig)
    collect: DQNCollectConfig = field(default_factory=DQNCollectConfig)
    other: DQNOtherConfig = field(default_factory=DQNOtherConfig)


class DQNPolicy(Policy):
    config_class: ClassVar[type] = DQNConfig
    action_kinds = ("discrete",)
    keeps_to_masks: ClassVar[bool] = True
    cfg: DQNConfig
    check_config = staticmethod(check_samples)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "dqn"

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = Adam(
            self._model.parameters(),
            lr=learn.learning_rate,
            grad_clip_type=learn.grad_clip_type,
            clip_value=learn.grad_clip_value,
        )
        self._target = self._new_target()
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {"target": self._target, "optimizer": self._optimizer}

    def _new_target(self) -> TargetNetwork:
        freq, theta = self.cfg.learn.target_update_freq, self.cfg.learn.target_theta
        return TargetNetwork(
            self._model, freq=100 if freq is None and theta is None else freq, theta=theta
        )

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        loss, metrics = self._step(self._batch(data))
        self._target.update()
        return {"cur_lr": self._optimizer.param_groups[0]["lr"], "total_loss": loss, **metrics}

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        q = at_action(self._model(batch["obs"])["logit"], batch["action"])  # (B,)
        target_q = self._target_q(batch)
        td_error = target_q - q
        metrics = {
            "q_value": q.detach().mean(),
            "target_q_value": target_q.mean(),
            "priority": td_error.detach().abs(),
        }
        return weighted_mean(td_error.square(), batch.get("weight")), metrics

    @torch.no_grad()
    def _target_q(self, batch: Batch) -> Tensor:
        q_value = masked_logits(self._target.module(batch["next_obs"]))
        reward, discount = batch["reward"], batch["discount"]
        if not self.cfg.learn.double_q:
            return td_target(reward, discount, q_value.amax(dim=-1))
        q_pick = masked_logits(self._model(batch["next_obs"]))
        return double_q_target(reward, discount, q_pick=q_pick, q_value=q_value)

    @torch.no_grad()
    def _next(self, batch: Batch) -> tuple[dict[str, Tensor], Tensor]:
        """Output of the target network for the next observation, and the best action there."""
        output = self._target.module(batch["next_obs"])
        picker = self._model(batch["next_obs"]) if self.cfg.learn.double_q else output
        return output, masked_logits(picker).argmax(dim=-1)

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss", "q_value", "target_q_value"]

    def _init_collect(self) -> None:
        self._q = acting_model(self._model)

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.0) -> Mapping[int, Any]:  # type: ignore[override]
        env_id, obs = stacked_of(data)
        output = self._q(obs)
        action = epsilon_greedy(masked_logits(output), eps, self._rng, output.get("action_mask"))
        return ByEnv(env_id, {"action": action})

    def _init_eval(self) -> None:
        self._q = acting_model(self._model)

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": masked_logits(self._q(obs)).argmax(axis=-1)})

    def _init_command(self) -> None:
        eps = self.cfg.other.eps
        self._epsilon = get_epsilon_greedy_fn(eps.start, eps.end, eps.decay, eps.type)

    def _get_setting_collect(self, command_info: Mapping[str, Any] | None = None) -> dict[str, Any]:
        envstep = command_info["envstep"] if command_info else 0
        return {"eps": self._epsilon(envstep)}
