"""PPO, on-policy, for discrete (one or several), continuous and hybrid actions.

Schulman et al. 2017, https://arxiv.org/abs/1707.06347
Schulman et al. 2016 (GAE), https://arxiv.org/abs/1506.02438
Ye et al. 2020 (dual clip), https://arxiv.org/abs/1912.09729

Letters in shapes: B batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from ding.policy.actions import masked_logits
from ding.policy.actor_critic import (
    ACTION_SPACES,
    ActorCriticPolicy,
    AdvantageCollectConfig,
    check_on_policy,
    ends_of,
    learned,
)
from ding.policy.config import (
    LearnConfig,
    PolicyConfig,
    at_least,
    check_multi_agent,
    check_samples,
    one_of,
    within,
)
from ding.policy.intrinsic_critic import IntrinsicCritic, IntrinsicReturnConfig
from ding.policy.modes import takes_all_envs
from ding.policy.teacher import TeacherConfig, teacher_of, teaching_loss
from ding.rl_utils.adder import terminated
from ding.rl_utils.ppo import clipped_surrogate, ratio_statistics, value_loss
from ding.rl_utils.td import weighted_mean
from ding.torch_utils import GradientStep
from ding.utils.batch import Batch, Rows, columns_of
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ClipLearnConfig(LearnConfig):
    """Settings of the loss, on- and off-policy."""

    learning_rate: float = 3e-4
    value_weight: float = 0.5
    entropy_weight: float = 0.0
    clip_ratio: float = 0.2
    """How far the probability of an action may move away from what it was when collected."""
    dual_clip: float | None = None
    """Bound of the objective for negative advantages, above 1; None for none."""
    value_clip: bool = False
    """Clip the move of the value prediction by clip_ratio too."""
    adv_norm: bool = True
    """Normalise advantages in every minibatch."""
    value_norm: bool = True
    """Let the critic predict returns divided by their running standard deviation."""
    grad_clip_type: str | None = "clip_norm"
    grad_clip_value: float | None = 0.5

    def __post_init__(self) -> None:
        if self.dual_clip is not None and self.dual_clip <= 1:
            raise ConfigError(f"policy.learn.dual_clip = {self.dual_clip}: must be above 1")


@dataclass(frozen=True, kw_only=True)
class PPOLearnConfig(ClipLearnConfig):
    epoch_per_collect: int = 10
    """Passes over the collected samples."""
    teacher: TeacherConfig | None = None
    """A policy to stay close to at first; None: there is none."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig(PolicyConfig):
    on_policy: bool = True
    action_space: str = "discrete"
    """'discrete' (also for several actions at once), 'continuous' or 'hybrid'."""
    multi_agent: bool = False
    """Several agents in one env: True is policy 'mappo'."""
    recompute_adv: bool = True
    """Compute the advantages anew, with the present critic, before every epoch."""
    intrinsic: IntrinsicReturnConfig | None = None
    """Returns of a reward model's `intrinsic_reward` (intrinsic_reward_type 'new'); None: none."""
    learn: PPOLearnConfig = field(default_factory=PPOLearnConfig)
    collect: AdvantageCollectConfig = field(default_factory=AdvantageCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ACTION_SPACES)
        within("policy.collect.gae_lambda", self.collect.gae_lambda, 0, 1)
        at_least("policy.learn.epoch_per_collect", self.learn.epoch_per_collect, 1)
        check_on_policy(self, "PPO")
        check_multi_agent(self, "mappo")


class PPOPolicy(ActorCriticPolicy):
    config_class: ClassVar[type] = PPOConfig
    takes_other_rewards = True
    action_kinds: ClassVar[tuple[str, ...]] = (*ActorCriticPolicy.action_kinds, "hybrid")
    cfg: PPOConfig
    check_config = staticmethod(check_samples)
    _intrinsic: IntrinsicCritic | None = None

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._teacher = teacher_of(self.cfg, self._model, "compute_actor")
        self._optimizer = self._adam(self._model.parameters(), learn.learning_rate, eps=1e-5)
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self.learn_state |= {"optimizer": self._optimizer}
        if self._teacher is not None:
            self.learn_state["teacher"] = self._teacher
        if self.cfg.intrinsic is not None:
            self._intrinsic = IntrinsicCritic(
                self.cfg.intrinsic, self.cfg.model, self._normalisers.seen, self._device
            )
            self.learn_state["intrinsic_critic"] = self._intrinsic

    def _forward_learn(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        columns, learn = self._prepared(data), self.cfg.learn
        self._check_size(columns)
        if learn.value_norm:
            self._return_scale.update(self._known_returns(columns))
        if "intrinsic_return" in columns and self._intrinsic is not None:
            self._intrinsic.update_scale(columns["intrinsic_return"])
        outputs: list[dict[str, Any]] = []
        for epoch in range(learn.epoch_per_collect):
            if epoch > 0 and self.cfg.recompute_adv:
                columns = self._with_advantage(columns)
            batches = map(self._taught, self._minibatches(self._for_loss(columns)))
            outputs += [learned(self._optimizer, *self._step(batch)) for batch in batches]
            self._update_intrinsic(columns)
        return outputs

    def _known_returns(self, columns: Batch) -> np.ndarray:
        """Returns that the scale of returns is of."""
        return columns["return"]

    def _taught(self, batch: Batch) -> Batch:
        return batch if self._teacher is None else self._teacher.add_to(batch)

    def _update_intrinsic(self, columns: Batch) -> None:
        """One pass of the critic of intrinsic rewards, if there is one."""
        if self._intrinsic is not None and "intrinsic_return" in columns:
            for batch in self._minibatches({k: columns[k] for k in ("obs", "intrinsic_return")}):
                self._intrinsic.update(batch)

    def _with_advantage(self, steps: Batch) -> Batch:
        columns = super()._with_advantage(steps)
        cfg = self.cfg.intrinsic
        if cfg is None or self._intrinsic is None or "intrinsic_reward" not in columns:
            return columns
        advantage, returns = self._intrinsic.advantages(
            columns, ends_of(columns), terminated(columns), self.cfg.collect.gae_lambda
        )
        columns["advantage"] = columns["advantage"] + cfg.weight * advantage
        return {**columns, "intrinsic_return": returns}

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"], mode="compute_actor_critic")
        log_prob, entropy = self._log_prob(output, batch["action"])
        loss, metrics = ppo_loss(self.cfg.learn, batch, log_prob, entropy, output["value"])
        if self._teacher is not None:
            loss = loss + teaching_loss(batch, masked_logits(output))
        return loss, metrics

    def _monitor_vars_learn(self) -> list[str]:
        return list(MONITORED)

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        return Rows(self._with_advantage(self._with_log_prob(columns_of(transitions))))


MONITORED = (
    *("cur_lr", "total_loss", "policy_loss", "value_loss"),
    *("entropy", "approx_kl", "clipfrac"),
)


def ppo_loss(
    learn: ClipLearnConfig, batch: Batch, log_prob: Tensor, entropy: Tensor, value: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss and metrics; log_prob, entropy and value, (B,) each, are of the present network."""
    policy_loss, entropy_mean, metrics = clipped_policy_loss(learn, batch, log_prob, entropy)
    clip = learn.clip_ratio if learn.value_clip else None
    critic_loss = value_loss(value, batch["value"], batch["return"], clip, batch.get("weight"))
    # Equation 9 of the paper, to be minimised.
    loss = policy_loss + learn.value_weight * critic_loss - learn.entropy_weight * entropy_mean
    return loss, {**metrics, "value_loss": critic_loss.detach()}


def clipped_policy_loss(
    learn: ClipLearnConfig, batch: Batch, log_prob: Tensor, entropy: Tensor
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Loss of the policy, mean entropy (to be maximised) and metrics."""
    advantage = batch["advantage"]
    if learn.adv_norm:
        advantage = normalised(advantage, batch.get("mask"))
    log_ratio, weight = log_prob - batch["log_prob"], batch.get("weight")
    ratio = log_ratio.exp()
    objective = clipped_surrogate(ratio, advantage, learn.clip_ratio, learn.dual_clip)
    policy_loss = -weighted_mean(objective, weight)
    entropy_mean = weighted_mean(entropy, weight)
    approx_kl, clipfrac = ratio_statistics(log_ratio, ratio, learn.clip_ratio)
    metrics = {
        "policy_loss": policy_loss.detach(),
        "entropy": entropy_mean.detach(),
        "approx_kl": approx_kl,
        "clipfrac": clipfrac,
    }
    return policy_loss, entropy_mean, metrics


def normalised(x: Tensor, mask: Tensor | None) -> Tensor:
    """To mean 0 and deviation 1, of those that exist by `mask` (floats); None: all do."""
    if mask is None:
        return (x - x.mean()) / (x.std() + 1e-8)
    count = mask.sum()
    centred = x - (mask * x).sum() / count
    variance = (mask * centred.square()).sum() / (count - 1).clamp(min=1)
    return centred / (variance.sqrt() + 1e-8)
