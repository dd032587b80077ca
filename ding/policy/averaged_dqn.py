"""Averaged DQN: targets from the mean of the last K target networks, which vary less than one.

Anschel et al. 2017, https://arxiv.org/abs/1611.01929
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ding.policy.config import at_least
from ding.policy.dqn import DQNConfig, DQNLearnConfig, DQNPolicy
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class AveragedDQNLearnConfig(DQNLearnConfig):
    n_average: int = 5
    """Target networks that are kept: the weights of the last so many times."""
    double_q: bool = False
    """The paper takes the best action of the mean; True lets the online network pick it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.learn.n_average", self.n_average, 1)
        if self.target_theta is not None:
            raise ConfigError(
                f"policy.learn.target_theta = {self.target_theta}: averaged targets are copies of "
                "the network at different times; set target_update_freq"
            )


@dataclass(frozen=True, kw_only=True)
class AveragedDQNConfig(DQNConfig):
    learn: AveragedDQNLearnConfig = field(default_factory=AveragedDQNLearnConfig)


class AveragedDQNPolicy(DQNPolicy):
    config_class = AveragedDQNConfig
    cfg: AveragedDQNConfig

    def _new_target(self) -> Any:
        learn = self.cfg.learn
        return AveragedTarget(self._model, learn.n_average, learn.target_update_freq or 100)


class AveragedTarget:
    """The network as it was at the last `n` times, `freq` updates apart."""

    def __init__(self, source: nn.Module, n: int, freq: int) -> None:
        self.module = _Mean(deepcopy(source).requires_grad_(False) for _ in range(n))
        self._source, self._freq, self._count = source, freq, 0

    @torch.no_grad()
    def update(self) -> None:
        self._count += 1
        if self._count % self._freq:
            return
        oldest = self.module[self._count // self._freq % len(self.module)]
        oldest.load_state_dict(self._source.state_dict())

    def state_dict(self) -> dict[str, Any]:
        return {"module": self.module.state_dict(), "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.module.load_state_dict(state["module"])
        self._count = state["count"]


class _Mean(nn.ModuleList):
    def forward(self, obs: Any) -> dict[str, Any]:
        outputs = [member(obs) for member in self]
        mean = torch.stack([output["logit"] for output in outputs]).mean(dim=0)
        return {**outputs[0], "logit": mean}
