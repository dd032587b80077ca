"""Rainbow: C51 with double-Q targets, dueling heads, noisy layers, n-step returns and priorities.

Hessel et al. 2018, https://arxiv.org/abs/1710.02298
Fortunato et al. 2018, https://arxiv.org/abs/1706.10295

The noise explores: it is drawn anew for every step in the envs and for every update, and left out
when evaluating.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ding.policy.acting import acting_model, eval_view
from ding.policy.actions import masked_logits
from ding.policy.c51 import C51Config, C51Policy
from ding.policy.dqn import DQNCollectConfig, DQNLearnConfig, DQNOtherConfig, EpsConfig
from ding.torch_utils.noise import reset_noise
from ding.utils.batch import ByEnv, stacked_of
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class RainbowLearnConfig(DQNLearnConfig):
    update_per_collect: int = 1
    batch_size: int = 32


@dataclass(frozen=True, kw_only=True)
class RainbowCollectConfig(DQNCollectConfig):
    n_sample: int | None = 32


@dataclass(frozen=True, kw_only=True)
class RainbowOtherConfig(DQNOtherConfig):
    eps: EpsConfig = field(default_factory=partial(EpsConfig, start=0.0, end=0.0))
    """Random actions besides the noise; none by default."""


@dataclass(frozen=True, kw_only=True)
class RainbowConfig(C51Config):
    discount_factor: float = 0.99
    nstep: int = 3
    priority: bool = True
    priority_IS_weight: bool = True  # noqa: N815 (established key)
    learn: RainbowLearnConfig = field(default_factory=RainbowLearnConfig)
    collect: RainbowCollectConfig = field(default_factory=RainbowCollectConfig)
    other: RainbowOtherConfig = field(default_factory=RainbowOtherConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        eps = self.other.eps
        if self.model.get("noise") is False and eps.start == eps.end == 0:
            raise ConfigError(
                "policy.model.noise = False leaves nothing that explores; set policy.other.eps too"
            )


class RainbowPolicy(C51Policy):
    config_class = RainbowConfig
    cfg: RainbowConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "rainbowdqn"

    def _forward_learn(self, data: Sequence[Any]) -> dict[str, Any]:
        reset_noise(self._model)
        reset_noise(self._target.module)
        return super()._forward_learn(data)

    def _forward_collect(self, data: Mapping[int, Any], eps: float = 0.0) -> Mapping[int, Any]:  # type: ignore[override]
        reset_noise(self._model)
        return super()._forward_collect(data, eps)

    def _init_eval(self) -> None:
        self._q_without_noise = acting_model(eval_view(self._model))

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": masked_logits(self._q_without_noise(obs)).argmax(axis=-1)})
