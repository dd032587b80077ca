"""DDPG: a deterministic actor climbs the values of its critic, for continuous actions.

Silver et al. 2014, http://proceedings.mlr.press/v32/silver14.html
Lillicrap et al. 2016, https://arxiv.org/abs/1509.02971

Letters in shapes: C critics, B batch, N envs, A dimensions of the action, which lie in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from ding.policy.acting import acting_model, noisy
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
from ding.policy.critics import (
    critic_values,
    first_critic_value,
    slow_target,
    split_parameters,
    squared_td_loss,
)
from ding.torch_utils import Adam, GradientStep
from ding.torch_utils.running_statistics import UpdateCount
from ding.utils.batch import Batch, ByEnv, stacked_of
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class NoiseRange:
    min: float = -0.5
    max: float = 0.5


@dataclass(frozen=True, kw_only=True)
class DDPGLearnConfig(LearnConfig):
    batch_size: int = 256
    learning_rate_actor: float = 1e-3
    learning_rate_critic: float = 1e-3
    actor_update_freq: int = 1
    """Updates of the critic for each one of the actor and of the target networks."""
    target_update_freq: int | None = None
    """Copy the weights to the targets every so many of these ..."""
    target_theta: float | None = None
    """... or move the targets this fraction of the way (0.005 if neither is set)."""
    noise: bool = False
    """Noise on the actions of the target, so that the critic trusts no sharp peaks (TD3)."""
    noise_sigma: float = 0.2
    noise_range: NoiseRange = field(default_factory=NoiseRange)
    """Bounds that the noise is clipped to."""

    def __post_init__(self) -> None:
        at_least("policy.learn.actor_update_freq", self.actor_update_freq, 1)
        if self.target_update_freq is not None:
            at_least("policy.learn.target_update_freq", self.target_update_freq, 1)
        if self.target_theta is not None:
            within("policy.learn.target_theta", self.target_theta, 0, 1)
        at_least("policy.learn.noise_sigma", self.noise_sigma, 0)
        at_least("policy.learn.noise_range.max", self.noise_range.max, self.noise_range.min)
        instead = "policy.learn.learning_rate_actor and learning_rate_critic"
        unused("policy.learn.learning_rate", self.learning_rate, LearnConfig.learning_rate, instead)


@dataclass(frozen=True, kw_only=True)
class DDPGCollectConfig(CollectConfig):
    n_sample: int | None = 1
    noise_sigma: float = 0.1
    """Standard deviation of the Gaussian noise by which collecting explores."""

    def __post_init__(self) -> None:
        at_least("policy.collect.noise_sigma", self.noise_sigma, 0)


@dataclass(frozen=True, kw_only=True)
class DDPGConfig(PolicyConfig):
    random_collect_size: int = 25000
    action_space: str = "continuous"
    multi_agent: bool = False
    """Several agents in one env: True is policy 'maddpg', of TD3 'matd3'."""
    learn: DDPGLearnConfig = field(default_factory=DDPGLearnConfig)
    collect: DDPGCollectConfig = field(default_factory=DDPGCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.action_space != type(self).action_space:
            raise ConfigError(
                f"policy.action_space = '{self.action_space}': policy '{self.type}' is for "
                f"'{type(self).action_space}' actions; continuous ones have policies 'ddpg', "
                "'td3' and 'd4pg', hybrid ones 'paddpg' and 'pdqn'"
            )
        check_multi_agent(self, "maddpg")


class DDPGPolicy(Policy):
    config_class: ClassVar[type] = DDPGConfig
    action_kinds = ("continuous",)
    keeps_to_masks = False
    cfg: DDPGConfig
    check_config = staticmethod(check_samples)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "qac"

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, self._model
        adam = partial(Adam, grad_clip_type=learn.grad_clip_type, clip_value=learn.grad_clip_value)
        critic, actor = split_parameters(model)
        self._critic_optimizer = adam(critic, lr=learn.learning_rate_critic)
        self._actor_optimizer = adam(actor, lr=learn.learning_rate_actor)
        self._target = slow_target(model, learn.target_update_freq, learn.target_theta)
        step = partial(GradientStep, model, compiled=learn.compile)
        self._critic_step = step(self._critic_optimizer, self._critic_loss)
        self._actor_step = step(self._actor_optimizer, self._actor_loss)
        self._updates = UpdateCount()
        self.learn_state |= {
            "optimizer_critic": self._critic_optimizer,
            "optimizer_actor": self._actor_optimizer,
            "target": self._target,
            "updates": self._updates,
        }

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        batch = self._batch(data)
        self._add_noise(batch)
        critic_loss, metrics = self._critic_step(batch)
        losses = {"critic_loss": critic_loss, "total_loss": critic_loss}
        if self._updates.next() % self.cfg.learn.actor_update_freq == 0:
            actor_loss, _ = self._actor_step(batch)
            losses |= {"actor_loss": actor_loss, "total_loss": critic_loss + actor_loss}
            self._target.update()
        rates = {
            "cur_lr_critic": self._critic_optimizer.param_groups[0]["lr"],
            "cur_lr_actor": self._actor_optimizer.param_groups[0]["lr"],
        }
        return {**rates, **losses, **metrics}

    def _add_noise(self, batch: Batch) -> None:
        """Drawn outside of the losses: the same numbers whether these are compiled or not."""
        learn = self.cfg.learn
        if learn.noise:
            noise = learn.noise_sigma * torch.randn_like(self._continuous(batch["action"]))
            batch["next_noise"] = noise.clamp(learn.noise_range.min, learn.noise_range.max)

    def _continuous(self, action: Any) -> Tensor:
        """The part of an action that takes noise."""
        return action

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        q = critic_values(self._model, {"obs": batch["obs"], "action": batch["action"]})  # (C, B)
        with torch.no_grad():
            x = {"obs": batch["next_obs"], "action": self._next_action(batch)}
            next_q = critic_values(self._target.module, x).amin(dim=0)
            target = batch["reward"] + batch["discount"] * next_q
        loss, metrics = squared_td_loss(q, target, batch.get("weight"))
        return loss, {"q_value": q.detach().mean(), **metrics}

    def _next_action(self, batch: Batch) -> Any:
        """The target's action after the n steps."""
        output = self._target.module(batch["next_obs"], mode="compute_actor")
        return smoothed(output["action"], batch)

    def _actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        q = first_critic_value(self._model, {"obs": batch["obs"], **self._act(batch["obs"])})
        return -q.mean(), {}

    def _act(self, obs: Any) -> dict[str, Any]:
        """Input of the critic by the actor's choice; carries gradients."""
        return {"action": self._model(obs, mode="compute_actor")["action"]}

    def _monitor_vars_learn(self) -> list[str]:
        losses = ["total_loss", "critic_loss", "actor_loss"]
        return ["cur_lr_critic", "cur_lr_actor", *losses, "q_value", "target_q_value"]

    # --- acting --------------------------------------------------------------------------------

    def _init_collect(self) -> None:
        self._actor = acting_model(self._model, "compute_actor")

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        action = self._actor(obs)["action"]
        return ByEnv(env_id, {"action": noisy(action, self.cfg.collect.noise_sigma, self._rng)})

    def _init_eval(self) -> None:
        self._actor = acting_model(self._model, "compute_actor")

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": self._actor(obs)["action"]})


def smoothed(action: Tensor, batch: Batch) -> Tensor:
    """The target's actions with the noise that was drawn for this batch, if any."""
    noise = batch.get("next_noise")
    return action if noise is None else (action + noise).clamp(-1.0, 1.0)
