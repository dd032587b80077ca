"""Soft actor-critic for discrete actions.

Christodoulou 2019, https://arxiv.org/abs/1910.07207

Letters in shapes: B batch, N envs, A actions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ding.policy.acting import sample_categorical
from ding.policy.actions import masked_logits
from ding.policy.critics import critic_values
from ding.policy.sac import SACPolicy
from ding.rl_utils.td import at_action
from ding.utils.batch import Batch, ByEnv, stacked_of


class DiscreteSACPolicy(SACPolicy):
    """SAC with expectations over all actions where the continuous version draws one."""

    action_kinds = ("discrete",)
    keeps_to_masks = True

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "discrete_qac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"twin_critic": True}

    def _add_noise(self, batch: Batch) -> None:
        """Nothing is drawn."""

    def _q_taken(self, batch: Batch) -> Tensor:
        q = critic_values(self._model, batch["obs"])
        return at_action(q, batch["action"].expand(len(q), -1))

    def _next_value(self, batch: Batch) -> Tensor:
        log_prob = self._log_probs(batch["next_obs"])
        q = critic_values(self._target.module, batch["next_obs"]).amin(dim=0)  # (B, A)
        return (log_prob.exp() * (q - batch["alpha"] * log_prob)).sum(dim=-1)

    def _actor_loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        log_prob = self._log_probs(batch["obs"])
        prob = log_prob.exp()
        with torch.no_grad():
            q = critic_values(self._model, batch["obs"]).amin(dim=0)
        loss = (prob * (batch["alpha"] * log_prob - q)).sum(dim=-1).mean()
        return loss, {"entropy": -(prob * log_prob).sum(dim=-1).detach().mean()}

    def _log_probs(self, obs: Any) -> Tensor:
        return torch.log_softmax(masked_logits(self._model(obs, mode="compute_actor")), dim=-1)

    def _default_entropy(self) -> float:
        return 0.6 * math.log(self.cfg.model["action_shape"])

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(
            env_id, {"action": sample_categorical(masked_logits(self._actor(obs)), self._rng)}
        )

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": masked_logits(self._actor(obs)).argmax(axis=-1)})
