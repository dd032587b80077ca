"""TD3: DDPG that does not fall for its critic's errors.

Fujimoto et al. 2018, https://arxiv.org/abs/1802.09477

Three changes, each of which DDPG can make by a setting too: the lower of two critics gives the
target, its actions are smoothed by noise, and actor and targets move at every second update.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ding.policy.ddpg import DDPGConfig, DDPGLearnConfig, DDPGPolicy


@dataclass(frozen=True, kw_only=True)
class TD3LearnConfig(DDPGLearnConfig):
    actor_update_freq: int = 2
    noise: bool = True


@dataclass(frozen=True, kw_only=True)
class TD3Config(DDPGConfig):
    learn: TD3LearnConfig = field(default_factory=TD3LearnConfig)


class TD3Policy(DDPGPolicy):
    config_class = TD3Config
    cfg: TD3Config

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"twin_critic": True}
