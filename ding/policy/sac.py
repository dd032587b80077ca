"""Soft actor-critic with twin critics and a learned temperature, for continuous actions.

Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905

Letters in shapes: B batch, N envs, A dimensions of the action, which lie in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.policy.acting import acting_model, sample_gaussian, squashed
from ding.policy.actions import masked_logits
from ding.policy.base import Policy
from ding.policy.config import (
    CollectConfig,
    LearnConfig,
    PolicyConfig,
    at_least,
    check_multi_agent,
    check_samples,
    unused,
    within,
)
from ding.policy.critics import critic_values, split_parameters, squared_td_loss
from ding.policy.teacher import TeacherConfig, teacher_of, teaching_loss
from ding.policy.temperature import Temperature
from ding.torch_utils import Adam, GradientStep, TargetNetwork
from ding.torch_utils.distribution import tanh_gaussian_sample
from ding.utils.batch import Batch, ByEnv, stacked_of


@dataclass(frozen=True, kw_only=True)
class SACLearnConfig(LearnConfig):
    batch_size: int = 256
    learning_rate_q: float = 3e-4
    learning_rate_policy: float = 3e-4
    learning_rate_alpha: float = 3e-4
    target_theta: float = 0.005
    """How far the target critics move towards the critics after each update."""
    alpha: float = 0.2
    """Weight of the entropy; with auto_alpha where it starts."""
    auto_alpha: bool = True
    """Learn alpha such that the entropy stays at target_entropy."""
    target_entropy: float | None = None
    """By default minus the dimensions of the action; 0.6 of the maximum for discrete actions."""
    teacher: TeacherConfig | None = None
    """A policy to stay close to at first; None: there is none."""

    def __post_init__(self) -> None:
        instead = "policy.learn.learning_rate_q and learning_rate_policy"
        unused("policy.learn.learning_rate", self.learning_rate, LearnConfig.learning_rate, instead)


@dataclass(frozen=True, kw_only=True)
class SACCollectConfig(CollectConfig):
    n_sample: int | None = 1


@dataclass(frozen=True, kw_only=True)
class SACConfig(PolicyConfig):
    random_collect_size: int = 10000
    multi_agent: bool = False
    """Several agents in one env: True is policy 'continuous_masac', or 'masac' of discrete SAC."""
    learn: SACLearnConfig = field(default_factory=SACLearnConfig)
    collect: SACCollectConfig = field(default_factory=SACCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.alpha", self.learn.alpha, 1e-8)
        within("policy.learn.target_theta", self.learn.target_theta, 0, 1)
        check_multi_agent(self, "masac")


class SACPolicy(Policy):
    config_class = SACConfig
    action_kinds = ("continuous",)
    keeps_to_masks = False
    cfg: SACConfig
    check_config = staticmethod(check_samples)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "qac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"action_space": "reparameterization", "twin_critic": True}

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, self._model
        self._teacher = teacher_of(self.cfg, model, "compute_actor")
        clip: dict[str, Any] = {
            "grad_clip_type": learn.grad_clip_type,
            "clip_value": learn.grad_clip_value,
        }
        given = learn.target_entropy
        self._target_entropy = self._default_entropy() if given is None else given
        self._temperature = Temperature(learn.alpha).to(self._device)
        critic, actor = split_parameters(model)
        optimizers = {
            "critic": Adam(critic, lr=learn.learning_rate_q, **clip),
            "actor": Adam(actor, lr=learn.learning_rate_policy, **clip),
            "alpha": Adam(self._temperature.parameters(), lr=learn.learning_rate_alpha),
        }
        self._critic_optimizer, self._alpha_optimizer = optimizers["critic"], optimizers["alpha"]
        self._target = TargetNetwork(model, theta=learn.target_theta, only=critic)
        step = partial(GradientStep, model, compiled=learn.compile)
        self._critic_step = step(optimizers["critic"], self._critic_loss)
        self._actor_step = step(optimizers["actor"], self._taught_actor_loss)
        self.learn_state |= {f"optimizer_{name}": o for name, o in optimizers.items()}
        self.learn_state |= {"target": self._target, "temperature": self._temperature}
        if self._teacher is not None:
            self.learn_state["teacher"] = self._teacher

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        batch = self._batch(data)
        self._add_noise(batch)
        if self._teacher is not None:
            batch = self._teacher.add_to(batch)
        batch["alpha"] = self._temperature.alpha.detach()
        critic_loss, critic = self._critic_step(batch)
        actor_loss, actor = self._actor_step(batch)
        if self.cfg.learn.auto_alpha:
            self._alpha_optimizer.step_with(actor["entropy"] - self._target_entropy)
        self._target.update()
        return {
            "cur_lr_q": self._critic_optimizer.param_groups[0]["lr"],
            "critic_loss": critic_loss,
            "policy_loss": actor_loss,
            "total_loss": critic_loss + actor_loss,
            "alpha": batch["alpha"],
            "entropy": actor["entropy"],
            **critic,
        }

    def _add_noise(self, batch: Batch) -> None:
        """Drawn outside of the losses: the same numbers whether these are compiled or not."""
        shape = (2, *batch["action"].shape)
        batch["next_noise"], batch["noise"] = torch.randn(shape, device=self._device)

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            target = batch["reward"] + batch["discount"] * self._next_value(batch)
        return squared_td_loss(self._q_taken(batch), target, batch.get("weight"))

    def _q_taken(self, batch: Batch) -> Tensor:
        return critic_values(self._model, {"obs": batch["obs"], "action": batch["action"]})

    def _next_value(self, batch: Batch) -> Tensor:
        """Soft value (B,) of the next observation."""
        action, log_prob = self._act(batch["next_obs"], batch["next_noise"])
        q = critic_values(self._target.module, {"obs": batch["next_obs"], "action": action})
        return q.amin(dim=0) - batch["alpha"] * log_prob

    def _actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        action, log_prob = self._act(batch["obs"], batch["noise"])
        q, _ = critic_values(self._model, {"obs": batch["obs"], "action": action}).min(dim=0)
        return (batch["alpha"] * log_prob - q).mean(), {"entropy": -log_prob.detach().mean()}

    def _taught_actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        loss, metrics = self._actor_loss(batch)
        if self._teacher is None:
            return loss, metrics
        output = self._model(batch["obs"], mode="compute_actor")
        return loss + teaching_loss(batch, masked_logits(output)), metrics

    def _act(self, obs: Any, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Squashed normal actions (B, A) that carry gradients, and log-probabilities (B,)."""
        output = self._model(obs, mode="compute_actor")["logit"]
        return tanh_gaussian_sample(output["mu"], output["sigma"], noise)

    def _default_entropy(self) -> float:
        return -float(np.prod(self.cfg.model["action_shape"]))

    def _monitor_vars_learn(self) -> list[str]:
        losses = ["total_loss", "critic_loss", "policy_loss"]
        return ["cur_lr_q", *losses, "alpha", "entropy", "target_q_value"]

    # --- acting --------------------------------------------------------------------------------

    def _init_collect(self) -> None:
        self._actor = acting_model(self._model, "compute_actor")

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        logit = self._actor(obs)["logit"]
        action = sample_gaussian(logit["mu"], logit["sigma"], self._rng)
        return ByEnv(env_id, {"action": np.tanh(action)})

    def _init_eval(self) -> None:
        self._actor = acting_model(self._model, "compute_actor")

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": squashed(self._actor(obs)["logit"]["mu"])})
