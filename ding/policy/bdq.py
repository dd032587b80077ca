"""Branching dueling Q-learning: many discrete actions at once, each with a branch of its own.

Tavakoli et al. 2018, https://arxiv.org/abs/1711.08946

A joint action of D parts with A choices each has A ** D values; branches need D * A outputs.
Letters in shapes: B batch, N envs, D branches, A choices (bins) of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from ding.policy.acting import epsilon_greedy
from ding.policy.dqn import DQNConfig, DQNLearnConfig, DQNPolicy
from ding.rl_utils.td import at_action, branching_target, weighted_mean
from ding.utils.batch import Batch, ByEnv, stacked_of
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class BDQLearnConfig(DQNLearnConfig):
    branch_targets: bool = False
    """Let every branch learn from its own next value (equation 4 of the paper) instead of from the
    mean over the branches, which the paper chose (equation 6)."""


@dataclass(frozen=True, kw_only=True)
class BDQConfig(DQNConfig):
    learn: BDQLearnConfig = field(default_factory=BDQLearnConfig)


class BDQPolicy(DQNPolicy):
    """DQN whose branches share the value, the encoder and the target."""

    config_class = BDQConfig
    cfg: BDQConfig
    action_kinds = ("multi_discrete",)
    keeps_to_masks = False

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "bdq"

    @classmethod
    def model_signature(cls, policy_cfg: Mapping[str, Any]) -> set[str]:
        # As the env says it; turned into branches and bins below.
        return {"action_shape", *(super().model_signature(policy_cfg) or ())}

    def _create_model(self, model: nn.Module | None) -> nn.Module:
        settings = self._cfg.model
        shape = settings.pop("action_shape", None)
        if shape is not None and model is None and "type" not in settings:
            settings.update(_branches(shape, settings))
        return super()._create_model(model)

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        q = self._model(batch["obs"])["logit"]  # (B, D, A)
        output, best = self._next(batch)
        next_q = at_action(output["logit"], best)  # (B, D)
        mean = not self.cfg.learn.branch_targets
        target = branching_target(batch["reward"], batch["discount"], next_q, mean=mean)
        squared = (target - at_action(q, batch["action"])).square().mean(dim=-1)  # (B,)
        metrics = {"q_value": q.detach().mean(), "priority": squared.detach().sqrt()}
        return weighted_mean(squared, batch.get("weight")), metrics

    def _monitor_vars_learn(self) -> list[str]:
        return ["cur_lr", "total_loss", "q_value"]

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.0) -> Mapping[int, Any]:  # type: ignore[override]
        env_id, obs = stacked_of(data)
        # Every branch explores by itself: the others still act as they would.
        action = epsilon_greedy(self._q(obs)["logit"], eps, self._rng)
        return ByEnv(env_id, {"action": action})

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": self._q(obs)["logit"].argmax(axis=-1)})


def _branches(action_shape: Any, given: Mapping[str, Any]) -> dict[str, int]:
    """`num_branches` and `action_bins_per_branch` of an action, checked against what is given."""
    bins = [int(n) for n in np.atleast_1d(action_shape)]
    if len(set(bins)) != 1:
        raise ConfigError(
            f"policy.model.action_shape = {bins}: all branches of 'bdq' have as many choices; let "
            "the env offer the same number in each (repeat choices of the smaller ones)"
        )
    found = {"num_branches": len(bins), "action_bins_per_branch": bins[0]}
    for key, value in found.items():
        if given.get(key, value) != value:
            raise ConfigError(
                f"policy.model.{key} = {given[key]}, but the action is {bins}; leave it out"
            )
    return found
