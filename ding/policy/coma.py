"""COMA: agents learn from what their action was worth more than their others would have been.

Foerster et al. 2018, https://arxiv.org/abs/1705.08926

A centralised critic values every action of an agent beside what the others did; its mean over the
agent's policy is the counterfactual baseline. The critic learns returns of TD(lambda), by itself as
it is when the steps come in. Letters in shapes: n steps, B batch, A agents, M actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.policy.actions import masked_logits
from ding.policy.actor_critic import ActorCriticPolicy, check_on_policy, samples_of
from ding.policy.agents import living_mean, of_living, with_dead
from ding.policy.config import (
    CollectConfig,
    LearnConfig,
    PolicyConfig,
    at_least,
    check_samples,
    one_of,
    within,
)
from ding.policy.mappo import MAPPOPolicy
from ding.policy.modes import takes_all_envs
from ding.rl_utils.td import at_action
from ding.torch_utils import GradientStep
from ding.utils.batch import Batch, columns_of, take


@dataclass(frozen=True, kw_only=True)
class COMALearnConfig(LearnConfig):
    learning_rate: float = 5e-4
    critic_learning_rate: float = 5e-4
    critic_epoch_per_collect: int = 4
    """Passes of the critic over the collected steps; the policy makes one, afterwards."""
    td_lambda: float = 0.8
    """Between one-step targets (0) and Monte-Carlo returns (1)."""
    entropy_weight: float = 0.01
    grad_clip_type: str | None = "clip_norm"
    grad_clip_value: float | None = 10.0


@dataclass(frozen=True, kw_only=True)
class COMAConfig(PolicyConfig):
    on_policy: bool = True
    action_space: str = "discrete"
    """'discrete': a baseline over all actions needs them counted."""
    learn: COMALearnConfig = field(default_factory=COMALearnConfig)
    collect: CollectConfig = field(default_factory=CollectConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("policy.action_space", self.action_space, ("discrete",))
        within("policy.learn.td_lambda", self.learn.td_lambda, 0, 1)
        at_least("policy.learn.critic_epoch_per_collect", self.learn.critic_epoch_per_collect, 1)
        check_on_policy(self, "COMA")


class COMAPolicy(ActorCriticPolicy):
    config_class = COMAConfig
    takes_other_rewards = True
    action_kinds = ("discrete_agents",)
    cfg: COMAConfig
    check_config = staticmethod(check_samples)
    _columns = MAPPOPolicy._columns
    _forward_collect = MAPPOPolicy._forward_collect
    _forward_eval = MAPPOPolicy._forward_eval

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "coma"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        learn, model = self.cfg.learn, self._model
        named = list(model.named_parameters())
        critic = [p for name, p in named if name.startswith("critic")]
        actor = [p for name, p in named if not name.startswith("critic")]
        self._optimizer = self._adam(actor, learn.learning_rate)
        critic_optimizer = self._adam(critic, learn.critic_learning_rate)
        self._critic_step, self._policy_step = (
            GradientStep(model, optimizer, loss, compiled=learn.compile)
            for optimizer, loss in (
                (critic_optimizer, self._critic_loss),
                (self._optimizer, self._policy_loss),
            )
        )
        self.learn_state |= {"optimizer": self._optimizer, "critic_optimizer": critic_optimizer}

    def _forward_learn(self, data: Sequence[Any]) -> list[dict[str, Any]]:
        columns = self._prepared(data)
        self._check_size(columns)
        outputs: list[dict[str, Any]] = []
        for _ in range(self.cfg.learn.critic_epoch_per_collect):
            outputs += self._critic_pass(columns)
        for batch in self._minibatches({k: columns[k] for k in ("obs", "action")}):
            loss, metrics = self._policy_step(batch)
            rate = self._optimizer.param_groups[0]["lr"]
            outputs.append({"cur_lr": rate, "total_loss": loss, **metrics})
        return outputs

    def _critic_pass(self, columns: Batch) -> list[dict[str, Any]]:
        used = {name: columns[name] for name in ("obs", "action", "return")}
        losses = [self._critic_step(batch)[0] for batch in self._minibatches(used)]
        return [{"total_loss": loss, "value_loss": loss} for loss in losses]

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        q = self._model(batch, mode="compute_critic")["q_value"]
        error = batch["return"] - at_action(q, batch["action"])
        return living_mean(error.square(), batch["obs"]), {}

    def _policy_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        obs, action = batch["obs"], batch["action"]
        logit = masked_logits(self._model(obs, mode="compute_actor"))
        log_prob = torch.log_softmax(logit, dim=-1)
        prob = log_prob.exp()
        with torch.no_grad():
            q = self._model(batch, mode="compute_critic")["q_value"]
            # Equation 4: what others do stays, the agent's own action is averaged out.
            advantage = at_action(q, action) - (prob * q).sum(dim=-1)
        policy_loss = -living_mean(advantage * at_action(log_prob, action), obs)
        entropy = -living_mean((prob * log_prob).sum(dim=-1), obs)
        metrics = {"policy_loss": policy_loss.detach(), "entropy": entropy.detach()}
        return policy_loss - self.cfg.learn.entropy_weight * entropy, metrics

    def _gae_lambda(self) -> float:
        return self.cfg.learn.td_lambda

    def _values(self, steps: Batch, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the actions taken; after the last ones, of what the policy would do there."""
        seen, of_team = self._normalisers.seen, steps["reward"].ndim == 1
        obs, last_obs = seen(steps["obs"]), seen(take(steps["next_obs"], end))
        action = steps["action"].astype(np.int64)
        q = self._critic({"obs": obs, "action": action})["q_value"]
        value = np.take_along_axis(q, action[..., None], axis=-1)[..., 0]
        logit = self._logit(last_obs)
        action = of_living(self._actions.sample(logit, self._rng), last_obs)
        q = self._critic({"obs": last_obs, "action": action})["q_value"]
        prob = np.exp(logit - logit.max(axis=-1, keepdims=True))
        last = (prob / prob.sum(axis=-1, keepdims=True) * q).sum(axis=-1)
        return with_dead(value, obs, of_team), with_dead(last, last_obs, of_team)

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss", "policy_loss", "value_loss", "entropy"]

    @takes_all_envs
    def _get_train_sample(self, transitions: Sequence[Any]) -> Sequence[Any]:
        return samples_of(self._with_advantage(columns_of(transitions)), SAMPLED)


SAMPLED = ("obs", "next_obs", "action", "reward", "done", "truncated", "end", "advantage", "return")
