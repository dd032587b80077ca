"""Phasic policy gradient: PPO with networks apart, and now and then a phase that shares features.

Cobbe et al. 2021, https://arxiv.org/abs/2009.04416

Policy and value have a network each. After every few collects the policy network learns to
predict returns as well, by a value head of its own, while its policy is held where it is.
Letters in shapes: B batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from ding.model.actor_critic import VAC
from ding.policy.acting import acting_model
from ding.policy.actions import masked_logits
from ding.policy.actor_critic import (
    ActorCriticPolicy,
    AdvantageCollectConfig,
    check_on_policy,
    learned,
)
from ding.policy.config import PolicyConfig, at_least, check_samples, one_of, within
from ding.policy.modes import takes_all_envs
from ding.policy.ppo import ClipLearnConfig, clipped_policy_loss
from ding.rl_utils.ppo import value_loss
from ding.torch_utils import GradientStep
from ding.torch_utils.distribution import categorical_kl
from ding.utils.batch import Batch, Rows, columns_of, concat


@dataclass(frozen=True, kw_only=True)
class PPGLearnConfig(ClipLearnConfig):
    learning_rate: float = 1e-3
    entropy_weight: float = 0.01
    actor_epoch_per_collect: int = 1
    """Passes of the policy network over every collect ..."""
    critic_epoch_per_collect: int = 1
    """... and of the value network."""
    aux_freq: int = 5
    """Collects between two auxiliary phases ..."""
    aux_train_epoch: int = 6
    """... and passes over all of those collects in such a phase."""
    aux_bc_weight: float = 1.0
    """Weight of what keeps the policy in place there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (
            *("actor_epoch_per_collect", "critic_epoch_per_collect"),
            *("aux_freq", "aux_train_epoch"),
        ):
            at_least(f"policy.learn.{name}", getattr(self, name), 1)


@dataclass(frozen=True, kw_only=True)
class PPGConfig(PolicyConfig):
    on_policy: bool = True
    action_space: str = "discrete"
    """'discrete' is the only one for now: one action."""
    learn: PPGLearnConfig = field(default_factory=PPGLearnConfig)
    collect: AdvantageCollectConfig = field(default_factory=AdvantageCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ("discrete",))
        within("policy.collect.gae_lambda", self.collect.gae_lambda, 0, 1)
        check_on_policy(self, "PPG")


class PPGPolicy(ActorCriticPolicy):
    config_class = PPGConfig
    takes_other_rewards = True
    action_kinds = ("discrete",)
    cfg: PPGConfig
    check_config = staticmethod(check_samples)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "ppg"

    @classmethod
    def model_signature(cls, policy_cfg: Mapping[str, Any]) -> set[str]:
        return set(inspect.signature(VAC).parameters)

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, self._model
        named = list(model.named_parameters())
        policy = [p for name, p in named if name.startswith("actor_critic.")]
        value = [p for name, p in named if not name.startswith("actor_critic.")]
        self._optimizer = self._adam(policy, learn.learning_rate, eps=1e-5)
        value_optimizer = self._adam(value, learn.learning_rate, eps=1e-5)
        self._policy_step, self._value_step, self._aux_step = (
            GradientStep(model, optimizer, loss, compiled=learn.compile)
            for optimizer, loss in (
                (self._optimizer, self._policy_loss),
                (value_optimizer, self._value_loss),
                (self._optimizer, self._aux_loss),
            )
        )
        self._recent = _Recent()
        self._policy_network = acting_model(model, "compute_actor_critic")
        self.learn_state |= {
            "optimizer": self._optimizer,
            "value_optimizer": value_optimizer,
            "recent": self._recent,
        }

    def _forward_learn(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        columns, learn = self._prepared(data), self.cfg.learn
        self._check_size(columns)
        if learn.value_norm:
            self._return_scale.update(columns["return"])
        for_loss = self._for_loss(columns)
        outputs: list[dict[str, Any]] = []
        for _ in range(learn.actor_epoch_per_collect):
            batches = self._minibatches(for_loss)
            outputs += [learned(self._optimizer, *self._policy_step(batch)) for batch in batches]
        for _ in range(learn.critic_epoch_per_collect):
            outputs += [self._value_update(batch) for batch in self._minibatches(for_loss)]
        self._recent.add({name: columns[name] for name in ("obs", "return")})
        if self._recent.count == learn.aux_freq:
            outputs += self._auxiliary_phase(self._recent.take())
        return outputs

    def _policy_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        output = self._model(batch["obs"], mode="compute_actor")
        log_prob, entropy = self._log_prob(output, batch["action"])
        learn = self.cfg.learn
        policy_loss, entropy_mean, metrics = clipped_policy_loss(learn, batch, log_prob, entropy)
        return policy_loss - learn.entropy_weight * entropy_mean, metrics

    def _value_update(self, batch: Batch) -> dict[str, Tensor]:
        """The same columns in both phases: compiled, they share a graph."""
        return self._value_step({name: batch[name] for name in ("obs", "value", "return")})[1]

    def _value_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self.cfg.learn
        value = self._model(batch["obs"], mode="compute_critic")["value"]
        clip = learn.clip_ratio if learn.value_clip else None
        loss = value_loss(value, batch["value"], batch["return"], clip)
        return learn.value_weight * loss, {"value_loss": loss.detach()}

    # --- auxiliary phase -----------------------------------------------------------------------

    def _auxiliary_phase(self, columns: Batch) -> list[dict[str, Any]]:
        """Both networks on the returns of the last collects."""
        learn, scale = self.cfg.learn, np.float32(self._return_scale.std)
        obs = self._normalisers.seen(columns["obs"])
        before = self._policy_network(obs)
        samples = {
            "obs": columns["obs"],
            "return": columns["return"] / scale,
            "logit": masked_logits(before),
            "aux_value": before["value"],
            "value": self._critic(obs)["value"],
        }
        outputs = []
        for _ in range(learn.aux_train_epoch):
            for batch in self._minibatches(samples):
                metrics = self._aux_step(batch)[1]
                outputs.append({**metrics, **self._value_update(batch)})
        return outputs

    def _aux_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """L_joint = L_aux + beta_clone mean KL(pi_old || pi), of the auxiliary phase."""
        learn = self.cfg.learn
        output = self._model(batch["obs"], mode="compute_actor_critic")
        clip = learn.clip_ratio if learn.value_clip else None
        aux_loss = value_loss(output["value"], batch["aux_value"], batch["return"], clip)
        cloning_loss = categorical_kl(batch["logit"], masked_logits(output)).mean()
        metrics = {"aux_loss": aux_loss.detach(), "bc_loss": cloning_loss.detach()}
        return aux_loss + learn.aux_bc_weight * cloning_loss, metrics

    def _monitor_vars_learn(self) -> list[str]:
        losses = ["total_loss", "policy_loss", "value_loss", "aux_loss", "bc_loss"]
        return ["cur_lr", *losses, "entropy", "approx_kl", "clipfrac"]

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        return Rows(self._with_advantage(self._with_log_prob(columns_of(transitions))))


class _Recent:
    """The collects since the last auxiliary phase."""

    def __init__(self) -> None:
        self._collects: list[Batch] = []

    @property
    def count(self) -> int:
        return len(self._collects)

    def add(self, columns: Batch) -> None:
        self._collects.append(columns)

    def take(self) -> Batch:
        columns, self._collects = concat(self._collects), []
        return columns

    def state_dict(self) -> dict[str, Any]:
        return {"collects": list(self._collects)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._collects = list(state["collects"])
