"""Advantage actor-critic, on-policy: one pass over every collect.

Mnih et al. 2016, https://arxiv.org/abs/1602.01783
Schulman et al. 2016 (GAE), https://arxiv.org/abs/1506.02438

Letters in shapes: B batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ding.policy.actor_critic import (
    ActorCriticPolicy,
    AdvantageCollectConfig,
    check_on_policy,
    learned,
)
from ding.policy.config import LearnConfig, PolicyConfig, check_samples, one_of, within
from ding.policy.modes import takes_all_envs
from ding.rl_utils.a2c import actor_critic_losses
from ding.torch_utils import GradientStep
from ding.utils.batch import Batch, Rows, columns_of

COLUMNS = ("obs", "action", "advantage", "return")


@dataclass(frozen=True, kw_only=True)
class A2CLearnConfig(LearnConfig):
    """An update per `batch_size` samples of a collect; as many as n_sample make it one update."""

    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of Adam's means of the gradient and of its square."""
    eps: float = 1e-8
    """What Adam adds to the root of the latter."""
    value_weight: float = 0.5
    entropy_weight: float = 0.01
    adv_norm: bool = False
    """Normalise advantages in every minibatch."""
    grad_clip_type: str | None = "clip_norm"
    grad_clip_value: float | None = 0.5


@dataclass(frozen=True, kw_only=True)
class A2CConfig(PolicyConfig):
    on_policy: bool = True
    action_space: str = "discrete"
    """'discrete' (also for several actions at once) or 'continuous'."""
    learn: A2CLearnConfig = field(default_factory=A2CLearnConfig)
    collect: AdvantageCollectConfig = field(default_factory=AdvantageCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ("discrete", "continuous"))
        within("policy.collect.gae_lambda", self.collect.gae_lambda, 0, 1)
        check_on_policy(self, "A2C")


class A2CPolicy(ActorCriticPolicy):
    config_class = A2CConfig
    takes_other_rewards = True
    cfg: A2CConfig
    check_config = staticmethod(check_samples)

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = self._adam(
            self._model.parameters(), learn.learning_rate, betas=learn.betas, eps=learn.eps
        )
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {"optimizer": self._optimizer}

    def _forward_learn(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        columns = self._prepared(data)
        self._check_size(columns)
        batches = self._minibatches({name: columns[name] for name in COLUMNS})
        return [learned(self._optimizer, *self._step(batch)) for batch in batches]

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self.cfg.learn
        output = self._model(batch["obs"], mode="compute_actor_critic")
        advantage = batch["advantage"]
        if learn.adv_norm:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy_loss, value_loss, entropy = actor_critic_losses(
            *self._log_prob(output, batch["action"]), advantage, output["value"], batch["return"]
        )
        loss = policy_loss + learn.value_weight * value_loss - learn.entropy_weight * entropy
        metrics = {
            "policy_loss": policy_loss.detach(),
            "value_loss": value_loss.detach(),
            "entropy": entropy.detach(),
        }
        return loss, metrics

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss", "policy_loss", "value_loss", "entropy"]

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        step = super()._process_transition(obs, policy_output, timestep)
        return {name: column for name, column in step.items() if name != "logit"}

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        return Rows(self._with_advantage(columns_of(transitions)))
