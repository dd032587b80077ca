"""MADDPG and MATD3: deterministic actors whose critics see what all agents see and do.

Lowe et al. 2017 (MADDPG), https://arxiv.org/abs/1706.02275
Ackermann et al. 2019 (MATD3), https://arxiv.org/abs/1910.01465

All agents share the actor. Letters in shapes: B batch, N envs, A agents, D numbers of
an action, which lie in [-1, 1], C critics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ding.policy.acting import noisy
from ding.policy.agents import agents_target, agents_td_loss, living_mean, of_living
from ding.policy.critics import critic_values, first_critic_value
from ding.policy.ddpg import DDPGConfig, DDPGPolicy
from ding.policy.td3 import TD3LearnConfig
from ding.policy.user_rows import with_team_numbers
from ding.utils.batch import Batch, ByEnv, columns_of, stacked_of


@dataclass(frozen=True, kw_only=True)
class MADDPGConfig(DDPGConfig):
    multi_agent: bool = True


class MADDPGPolicy(DDPGPolicy):
    config_class: ClassVar[type] = MADDPGConfig
    action_kinds = ("continuous_agents",)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "continuous_maqac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"global_obs_shape": None}

    def _columns(self, data: Sequence[Any]) -> Batch:
        return with_team_numbers(columns_of(data))

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Equation 6, for every agent: all act by their target policies in the next state."""
        q = critic_values(self._model, {"obs": batch["obs"], "action": batch["action"]})
        with torch.no_grad():
            x = {"obs": batch["next_obs"], "action": self._next_action(batch)}
            target = agents_target(batch, critic_values(self._target.module, x).amin(dim=0))
        loss, metrics = agents_td_loss(q, target, batch)
        return loss, {"q_value": living_mean(q.detach(), batch["obs"]).mean(), **metrics}

    def _actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Equation 5: an agent's own action is its policy's, those of the others were stored."""
        obs = batch["obs"]
        own = self._act(obs)["action"]
        x = {"obs": obs, "action": batch["action"], "own_action": own}
        return -living_mean(first_critic_value(self._model, x), obs), {}

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        action = noisy(self._actor(obs)["action"], self.cfg.collect.noise_sigma, self._rng)
        return ByEnv(env_id, {"action": of_living(action, obs)})

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": of_living(self._actor(obs)["action"], obs)})


@dataclass(frozen=True, kw_only=True)
class MATD3Config(MADDPGConfig):
    learn: TD3LearnConfig = field(default_factory=TD3LearnConfig)


class MATD3Policy(MADDPGPolicy):
    """With the three changes of TD3: twin critics, smoothed targets, actors that wait."""

    config_class = MATD3Config
    cfg: MATD3Config

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._model_defaults(policy_cfg), "twin_critic": True}
