"""MASAC: soft actor-critic for agents that share a policy, with centralised critics.

Haarnoja et al. 2018, https://arxiv.org/abs/1812.05905
Christodoulou 2019 (discrete actions), https://arxiv.org/abs/1910.07207
Lowe et al. 2017 (centralised critics), https://arxiv.org/abs/1706.02275

Every agent has its own values and entropy, the temperature is that of all. Letters in shapes:
B batch, N envs, A agents, M actions, D numbers of an action, C critics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.policy.acting import sample_categorical, sample_gaussian, squashed
from ding.policy.actions import masked_logits
from ding.policy.agents import (
    agents_target,
    agents_td_loss,
    check_masks,
    living_mean,
    of_living,
)
from ding.policy.critics import critic_values
from ding.policy.discrete_sac import DiscreteSACPolicy
from ding.policy.sac import SACConfig, SACPolicy
from ding.policy.user_rows import with_team_numbers
from ding.rl_utils.td import at_action
from ding.utils.batch import Batch, ByEnv, columns_of, stacked_of


@dataclass(frozen=True, kw_only=True)
class MASACConfig(SACConfig):
    multi_agent: bool = True


class ContinuousMASACPolicy(SACPolicy):
    """Critics see the global state and the actions of all agents."""

    config_class = MASACConfig
    action_kinds = ("continuous_agents",)

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "continuous_maqac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._model_defaults(policy_cfg), "global_obs_shape": None}

    def _columns(self, data: Sequence[Any]) -> Batch:
        return with_team_numbers(columns_of(data))

    def _critic_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            target = agents_target(batch, self._next_value(batch))
        return agents_td_loss(self._q_taken(batch), target, batch)

    def _actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """What others do is no choice of an agent: its action alone carries gradients."""
        obs = batch["obs"]
        own, log_prob = self._act(obs, batch["noise"])
        x = {"obs": obs, "action": own.detach(), "own_action": own}
        q = critic_values(self._model, x).amin(dim=0)
        loss = living_mean(batch["alpha"] * log_prob - q, obs)
        return loss, {"entropy": -living_mean(log_prob.detach(), obs)}

    # --- acting --------------------------------------------------------------------------------

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        logit = self._actor(obs)["logit"]
        action = np.tanh(sample_gaussian(logit["mu"], logit["sigma"], self._rng))
        return ByEnv(env_id, {"action": of_living(action, obs)})

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": of_living(squashed(self._actor(obs)["logit"]["mu"]), obs)})


class MASACPolicy(DiscreteSACPolicy):
    """For discrete actions: critics see the global state and value all actions of each agent."""

    config_class = MASACConfig
    action_kinds = ("discrete_agents",)
    cfg: MASACConfig
    _columns = ContinuousMASACPolicy._columns
    _critic_loss = ContinuousMASACPolicy._critic_loss

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "discrete_maqac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._model_defaults(policy_cfg), "global_obs_shape": None}

    def _q_taken(self, batch: Batch) -> Tensor:
        q = critic_values(self._model, batch["obs"])  # (C, B, A, M)
        return at_action(q, batch["action"].expand(len(q), -1, -1))

    def _actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        obs = batch["obs"]
        log_prob = self._log_probs(obs)
        prob = log_prob.exp()
        with torch.no_grad():
            q = critic_values(self._model, obs).amin(dim=0)
        loss = living_mean((prob * (batch["alpha"] * log_prob - q)).sum(dim=-1), obs)
        return loss, {"entropy": -living_mean((prob * log_prob).sum(dim=-1).detach(), obs)}

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        check_masks(env_id, obs)
        action = sample_categorical(masked_logits(self._actor(obs)), self._rng)
        return ByEnv(env_id, {"action": of_living(action, obs)})

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        check_masks(env_id, obs)
        action = masked_logits(self._actor(obs)).argmax(axis=-1)
        return ByEnv(env_id, {"action": of_living(action, obs)})
