"""PADDPG: DDPG for hybrid actions, a type together with continuous arguments.

Hausknecht & Stone 2016, https://arxiv.org/abs/1511.04143

The actor gives arguments and, as if they were continuous too, probabilities of the types; the
highest one is taken. The critic learns from the types that were taken and passes the actor the
gradient by those probabilities.

Letters in shapes: B batch, N envs, K types, M arguments, which lie in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ding.policy.actions import best_hybrid_action, hybrid_action, masked_logits
from ding.policy.ddpg import DDPGConfig, DDPGPolicy, smoothed
from ding.policy.dqn import DQNOtherConfig
from ding.rl_utils.exploration import get_epsilon_greedy_fn
from ding.utils.batch import Batch, ByEnv, stacked_of


@dataclass(frozen=True, kw_only=True)
class PADDPGConfig(DDPGConfig):
    action_space: str = "hybrid"
    other: DQNOtherConfig = field(default_factory=DQNOtherConfig)


class PADDPGPolicy(DDPGPolicy):
    """Actions are {'action_type': (N,), 'action_args': (N, M)}."""

    config_class = PADDPGConfig
    action_kinds = ("hybrid",)
    keeps_to_masks = True
    cfg: PADDPGConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "hybrid_qac"

    # --- learning ------------------------------------------------------------------------------

    def _continuous(self, action: Any) -> Tensor:
        return action["action_args"]

    def _next_action(self, batch: Batch) -> Any:
        output = self._target.module(batch["next_obs"], mode="compute_actor")
        args = smoothed(output["action_args"], batch)
        return {"action_type": masked_logits(output).argmax(dim=-1), "action_args": args}

    def _act(self, obs: Any) -> dict[str, Any]:
        output = self._model(obs, mode="compute_actor")
        return {"action": {"action_args": output["action_args"]}, "logit": masked_logits(output)}

    # --- acting --------------------------------------------------------------------------------

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.0) -> Mapping[int, Any]:  # type: ignore[override]
        env_id, obs = stacked_of(data)
        sigma = self.cfg.collect.noise_sigma
        action = hybrid_action(self._actor(obs), eps=eps, sigma=sigma, rng=self._rng)
        return ByEnv(env_id, {"action": action})

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": best_hybrid_action(self._actor(obs))})

    def _init_command(self) -> None:
        eps = self.cfg.other.eps
        self._epsilon = get_epsilon_greedy_fn(eps.start, eps.end, eps.decay, eps.type)

    def _get_setting_collect(self, command_info: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {"eps": self._epsilon(command_info["envstep"] if command_info else 0)}
