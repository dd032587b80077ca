"""PPO from a replay buffer: samples keep the advantages and probabilities of their collect.

Schulman et al. 2017, https://arxiv.org/abs/1707.06347

Letters in shapes: B batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ding.policy.actor_critic import (
    ACTION_SPACES,
    ActorCriticPolicy,
    AdvantageCollectConfig,
    learned,
    samples_of,
)
from ding.policy.config import PolicyConfig, check_samples, one_of, within
from ding.policy.modes import single_steps
from ding.policy.ppo import MONITORED, ClipLearnConfig, ppo_loss
from ding.policy.unrolled import check_known_behaviour
from ding.torch_utils import GradientStep
from ding.utils.batch import Batch, Rows, columns_of
from ding.utils.errors import ConfigError

COLUMNS = ("obs", "action", "log_prob", "value", "advantage", "return")
STEP = ("reward", "next_obs", "done", "truncated")


@dataclass(frozen=True, kw_only=True)
class PPOOffPolicyLearnConfig(ClipLearnConfig):
    update_per_collect: int = 5
    learning_rate: float = 1e-3
    entropy_weight: float = 0.01
    adv_norm: bool = False


@dataclass(frozen=True, kw_only=True)
class PPOOffPolicyCollectConfig(AdvantageCollectConfig):
    n_sample: int | None = 64


@dataclass(frozen=True, kw_only=True)
class PPOOffPolicyConfig(PolicyConfig):
    action_space: str = "discrete"
    """'discrete' (also for several actions at once), 'continuous' or 'hybrid'."""
    nstep_return: bool = False
    """Train the critic on returns of `nstep` steps, by the critic of now, in place of GAE's."""
    nstep: int = 1
    learn: PPOOffPolicyLearnConfig = field(default_factory=PPOOffPolicyLearnConfig)
    collect: PPOOffPolicyCollectConfig = field(default_factory=PPOOffPolicyCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ACTION_SPACES)
        within("policy.collect.gae_lambda", self.collect.gae_lambda, 0, 1)
        if self.nstep != 1 and not self.nstep_return:
            raise ConfigError(
                f"policy.nstep = {self.nstep} takes effect with policy.nstep_return = True only"
            )
        check_known_behaviour(self, "PPO")


class PPOOffPolicy(ActorCriticPolicy):
    config_class = PPOOffPolicyConfig
    takes_other_rewards = False  # advantages are worked out when samples are collected
    action_kinds = ("discrete", "multi_discrete", "continuous", "hybrid")
    cfg: PPOOffPolicyConfig
    check_config = staticmethod(check_samples)

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = self._adam(self._model.parameters(), learn.learning_rate, eps=1e-5)
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {"optimizer": self._optimizer}

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        columns = self._prepared(data)
        if self.cfg.learn.value_norm:
            self._return_scale.update(columns["return"])
        scale, batch = self._return_scale.std, self._batch(Rows(columns))
        for name in ("return", *(("reward",) if self.cfg.nstep_return else ())):
            batch[name] = batch[name] / scale
        return learned(self._optimizer, *self._step(batch))

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"], mode="compute_actor_critic")
        log_prob, entropy = self._log_prob(output, batch["action"])
        batch = {**batch, "return": self._return(batch)}
        loss, metrics = ppo_loss(self.cfg.learn, batch, log_prob, entropy, output["value"])
        error = batch["return"] - output["value"].detach()
        return loss, {**metrics, "priority": error.abs()}

    @torch.no_grad()
    def _return(self, batch: Batch) -> Tensor:
        """Target of the critic, (B,)."""
        if not self.cfg.nstep_return:
            return batch["return"]
        next_value = self._model(batch["next_obs"], mode="compute_critic")["value"]
        return batch["reward"] + batch["discount"] * next_value

    def _monitor_vars_learn(self) -> list[str]:
        return list(MONITORED)

    @single_steps
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        columns = self._with_advantage(self._with_log_prob(columns_of(transitions)))
        if not self.cfg.nstep_return:
            return samples_of(columns, COLUMNS)
        columns |= columns_of(super()._get_train_sample(transitions))
        origin = [name for name in ("episode_id", "episode_step") if name in columns]
        return samples_of(columns, (*COLUMNS, *STEP, *origin))
