"""Soft Q-learning for discrete actions: values count the entropy of the policy they follow.

Haarnoja et al. 2017, https://arxiv.org/abs/1702.08165

The policy is softmax(Q / alpha). Letters in shapes: B batch, N envs, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ding.policy.acting import epsilon_greedy, with_gumbel_noise
from ding.policy.actions import masked_logits
from ding.policy.config import at_least
from ding.policy.dqn import DQNConfig, DQNLearnConfig, DQNPolicy
from ding.rl_utils.td import soft_value, td_target
from ding.utils.batch import Batch, ByEnv, stacked_of
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SoftLearnConfig(DQNLearnConfig):
    double_q: bool = False
    """Stays False: a soft value takes all actions, none is picked."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.double_q:
            raise ConfigError(
                "policy.learn.double_q = True: soft values pick no action; leave it out"
            )


@dataclass(frozen=True, kw_only=True)
class SQLLearnConfig(SoftLearnConfig):
    alpha: float = 0.1
    """Temperature: how much entropy counts beside reward."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.alpha", self.alpha, 1e-8)


@dataclass(frozen=True, kw_only=True)
class SQLConfig(DQNConfig):
    learn: SQLLearnConfig = field(default_factory=SQLLearnConfig)


class SQLPolicy(DQNPolicy):
    """DQN with soft values as targets; collects with its own policy, a share eps at random."""

    config_class: ClassVar[type] = SQLConfig
    cfg: SQLConfig

    @property
    def _alpha(self) -> float:
        return self.cfg.learn.alpha

    @torch.no_grad()
    def _target_q(self, batch: Batch) -> Tensor:
        next_q = masked_logits(self._target.module(batch["next_obs"]))
        return td_target(batch["reward"], batch["discount"], soft_value(next_q, self._alpha))

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.0) -> Mapping[int, Any]:  # type: ignore[override]
        env_id, obs = stacked_of(data)
        output = self._q(obs)
        logit = masked_logits(output) / np.float32(self._alpha)
        action = epsilon_softmax(logit, eps, self._rng, output.get("action_mask"))
        return ByEnv(env_id, {"action": action})


def epsilon_softmax(
    logit: np.ndarray, eps: float, rng: np.random.Generator, allowed: np.ndarray | None = None
) -> np.ndarray:
    """(N, A) to (N,): any action with probability eps, else one drawn from the softmax."""
    return epsilon_greedy(with_gumbel_noise(logit, rng), eps, rng, allowed)
