"""PPO, on-policy, for discrete and continuous actions.

Schulman et al. 2017, https://arxiv.org/abs/1707.06347
Schulman et al. 2016 (GAE), https://arxiv.org/abs/1506.02438
Ye et al. 2020 (dual clip), https://arxiv.org/abs/1912.09729

Letters in shapes: B batch, N envs, A actions (or dimensions of the action).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from ding.policy import acting
from ding.policy.acting import acting_model, sample_categorical, sample_gaussian
from ding.policy.base import Policy, takes_all_envs
from ding.policy.config import (
    CollectConfig,
    LearnConfig,
    PolicyConfig,
    at_least,
    check_samples,
    one_of,
    within,
)
from ding.rl_utils.gae import gae_advantages
from ding.rl_utils.ppo import clipped_surrogate, ppo_value_data, ppo_value_error
from ding.torch_utils import Adam, GradientStep
from ding.torch_utils.distribution import (
    categorical_log_prob_entropy,
    gaussian_entropy,
    gaussian_log_prob,
)
from ding.torch_utils.running import RunningScale
from ding.utils.batch import Batch, ByEnv, Rows, columns_of, gather, stacked_of, take
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class PPOLearnConfig(LearnConfig):
    epoch_per_collect: int = 10
    """Passes over the collected samples."""
    learning_rate: float = 3e-4
    value_weight: float = 0.5
    entropy_weight: float = 0.0
    clip_ratio: float = 0.2
    """How far the probability of an action may move within one collect."""
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


@dataclass(frozen=True, kw_only=True)
class PPOCollectConfig(CollectConfig):
    gae_lambda: float = 0.95
    """Between one-step errors (0) and Monte-Carlo returns (1)."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig(PolicyConfig):
    on_policy: bool = True
    action_space: str = "discrete"
    """'discrete' or 'continuous'."""
    recompute_adv: bool = True
    """Compute the advantages anew, with the present critic, before every epoch."""
    learn: PPOLearnConfig = field(default_factory=PPOLearnConfig)
    collect: PPOCollectConfig = field(default_factory=PPOCollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ("discrete", "continuous"))
        within("policy.collect.gae_lambda", self.collect.gae_lambda, 0, 1)
        at_least("policy.learn.epoch_per_collect", self.learn.epoch_per_collect, 1)
        if self.learn.dual_clip is not None and self.learn.dual_clip <= 1:
            raise ConfigError(f"policy.learn.dual_clip = {self.learn.dual_clip}: must be above 1")
        for name in ("priority", "random_collect_size"):
            if getattr(self, name):
                raise ConfigError(f"policy.{name} has no effect in on-policy PPO; leave it out")
        n_sample, batch_size = self.collect.n_sample, self.learn.batch_size
        if n_sample is not None and n_sample < batch_size:
            raise ConfigError(
                f"policy.learn.batch_size = {batch_size} is more than the samples of a collect "
                f"(policy.collect.n_sample = {n_sample})"
            )
        if self.nstep != 1:
            raise ConfigError("policy.nstep has no effect in PPO; set policy.collect.gae_lambda")


class PPOPolicy(Policy):
    config_class = PPOConfig
    action_kinds = ("discrete", "continuous")
    cfg: PPOConfig
    check_config = staticmethod(check_samples)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "vac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"action_space": policy_cfg["action_space"], "orthogonal_init": True}

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        learn = self.cfg.learn
        self._optimizer = Adam(
            self._model.parameters(),
            lr=learn.learning_rate,
            eps=1e-5,
            grad_clip_type=learn.grad_clip_type,
            clip_value=learn.grad_clip_value,
        )
        self._step = GradientStep(self._model, self._optimizer, self._loss, compiled=learn.compile)
        self._return_scale = RunningScale()
        self.learn_state |= {"optimizer": self._optimizer, "return_scale": self._return_scale}

    def _forward_learn(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        columns, learn = columns_of(data), self.cfg.learn
        size = len(columns["reward"])
        self._check_size(size)
        self._return_scale.update(columns["return"])
        outputs = []
        for epoch in range(learn.epoch_per_collect):
            if epoch > 0 and self.cfg.recompute_adv:
                columns = self._with_advantage(columns)
            order = self._rng.permutation(size)
            shuffled = self._batch(Rows(gather(self._for_loss(columns), order)))
            for start in range(0, size - learn.batch_size + 1, learn.batch_size):
                loss, metrics = self._step(take(shuffled, slice(start, start + learn.batch_size)))
                lr = self._optimizer.param_groups[0]["lr"]
                outputs.append({"cur_lr": lr, "total_loss": loss, **metrics})
        return outputs

    def _check_size(self, size: int) -> None:
        if size < self.cfg.learn.batch_size:
            raise ConfigError(
                f"policy.learn.batch_size = {self.cfg.learn.batch_size} is more than the {size} "
                "samples of a collect (policy.collect.n_sample)"
            )

    def _for_loss(self, columns: Batch) -> Batch:
        scale = np.float32(self._return_scale.std if self.cfg.learn.value_norm else 1.0)
        return {
            **{name: columns[name] for name in ("obs", "action", "log_prob", "advantage")},
            "return": columns["return"] / scale,
            "value": columns["value"] / scale,
        }

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        learn = self.cfg.learn
        output = self._model(batch["obs"], mode="compute_actor_critic")
        log_prob, entropy = self._log_prob(output["logit"], batch["action"])
        advantage = batch["advantage"]
        if learn.adv_norm:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        log_ratio = log_prob - batch["log_prob"]
        ratio = log_ratio.exp()
        objective = clipped_surrogate(ratio, advantage, learn.clip_ratio, learn.dual_clip)
        policy_loss, entropy_mean = -objective.mean(), entropy.mean()
        value = ppo_value_data(output["value"], batch["value"], batch["return"], None)
        value_loss = ppo_value_error(value, learn.clip_ratio, learn.value_clip)
        loss = policy_loss + learn.value_weight * value_loss - learn.entropy_weight * entropy_mean
        metrics = {
            "policy_loss": policy_loss.detach(),
            "value_loss": value_loss.detach(),
            "entropy": entropy_mean.detach(),
            "approx_kl": -log_ratio.detach().mean(),
            "clipfrac": ((ratio.detach() - 1).abs() > learn.clip_ratio).float().mean(),
        }
        return loss, metrics

    def _log_prob(self, logit: Any, action: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probability (B,) of the actions, and entropy (B,) of the distribution."""
        if self.cfg.action_space == "discrete":
            return categorical_log_prob_entropy(logit, action)
        mu, sigma = logit["mu"], logit["sigma"]
        return gaussian_log_prob(mu, sigma, action), gaussian_entropy(sigma)

    def _monitor_vars_learn(self) -> list[str]:
        losses = ["total_loss", "policy_loss", "value_loss"]
        return ["cur_lr", *losses, "entropy", "approx_kl", "clipfrac"]

    # --- collecting ----------------------------------------------------------------------------

    def _init_collect(self) -> None:
        self._actor = acting_model(self._model, "compute_actor")
        self._critic = acting_model(self._model, "compute_critic")
        if "learn" not in self.fields:
            self._return_scale = RunningScale()

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        logit = self._actor(obs)["logit"]
        return ByEnv(env_id, {"action": self._sample(logit), "logit": logit})

    def _sample(self, logit: Any) -> np.ndarray:
        if self.cfg.action_space == "discrete":
            return sample_categorical(logit, self._rng)
        return sample_gaussian(logit["mu"], logit["sigma"], self._rng)

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        picked = super()._process_transition(obs, policy_output, timestep)
        return {**picked, "logit": policy_output["logit"]}

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        steps = columns_of(transitions)
        log_prob = self._log_prob_of(steps["logit"], steps["action"])
        kept = {name: column for name, column in steps.items() if name != "logit"}
        return Rows(self._with_advantage({**kept, "log_prob": log_prob}))

    def _log_prob_of(self, logit: Any, action: np.ndarray) -> np.ndarray:
        if self.cfg.action_space == "discrete":
            return acting.categorical_log_prob(logit, action)
        return acting.gaussian_log_prob(logit["mu"], logit["sigma"], action)

    def _with_advantage(self, steps: Batch) -> Batch:
        """Add columns value, advantage and return, by the critic as it is now."""
        scale = np.float32(self._return_scale.std if self.cfg.learn.value_norm else 1.0)
        value = self._critic(steps["obs"])["value"] * scale
        done = steps["done"]
        end = np.array(steps.get("end", done), dtype=bool)
        end[-1] = True
        next_value = np.empty_like(value)
        next_value[:-1] = value[1:]
        # Where a piece ends the next row is another episode: value the true last observation.
        next_value[end] = self._critic(take(steps["next_obs"], end))["value"] * scale
        terminated = done & ~steps["truncated"] if "truncated" in steps else done
        if self.cfg.learn.ignore_done:
            terminated = np.zeros_like(terminated)
        advantage = gae_advantages(
            steps["reward"],
            value,
            next_value,
            terminated,
            end,
            self.cfg.discount_factor,
            self.cfg.collect.gae_lambda,
        )
        return {**steps, "value": value, "advantage": advantage, "return": advantage + value}

    # --- evaluating ----------------------------------------------------------------------------

    def _init_eval(self) -> None:
        self._actor = acting_model(self._model, "compute_actor")

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        logit = self._actor(obs)["logit"]
        discrete = self.cfg.action_space == "discrete"
        return ByEnv(env_id, {"action": logit.argmax(axis=1) if discrete else logit["mu"]})
