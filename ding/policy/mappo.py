"""MAPPO and IPPO: PPO for agents that share a policy, with a centralised critic or one of each.

Yu et al. 2022 (MAPPO), https://arxiv.org/abs/2103.01955
de Witt et al. 2020 (IPPO), https://arxiv.org/abs/2011.09533

A sample is a joint step: actions, values and advantages have an axis of agents. With one reward for
the team, an agent that dies still counts with what the team gets afterwards; with a reward for each
of them, its death is its end. Nothing is learned from the dead. Letters in shapes: n steps, N envs,
B batch, A agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from ding.model.agents import alive_of
from ding.policy.agents import check_masks, of_living, with_dead
from ding.policy.ppo import PPOConfig, PPOLearnConfig, PPOPolicy
from ding.policy.user_rows import with_team_numbers
from ding.utils.batch import Batch, ByEnv, columns_of, stacked_of, take
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class MAPPOLearnConfig(PPOLearnConfig):
    learning_rate: float = 5e-4
    epoch_per_collect: int = 5
    entropy_weight: float = 0.01
    grad_clip_value: float | None = 10.0


@dataclass(frozen=True, kw_only=True)
class MAPPOConfig(PPOConfig):
    multi_agent: bool = True
    learn: MAPPOLearnConfig = field(default_factory=MAPPOLearnConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.action_space not in ("discrete", "continuous"):
            raise ConfigError(
                f"policy.action_space = '{self.action_space}': agents have 'discrete' or "
                "'continuous' actions"
            )
        if self.intrinsic is not None:
            raise ConfigError(
                f"policy.intrinsic = {self.intrinsic}: policy '{self.type}' has no critic of "
                "intrinsic rewards; leave it out and add them up (intrinsic_reward_type = 'add')"
            )


class MAPPOPolicy(PPOPolicy):
    config_class: ClassVar[type] = MAPPOConfig
    action_kinds: ClassVar[tuple[str, ...]] = ("discrete_agents", "continuous_agents")
    cfg: MAPPOConfig
    central_critic: ClassVar[bool] = True

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "mavac"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        usual = {"global_obs_shape": None, "central_critic": cls.central_critic}
        return {**super()._model_defaults(policy_cfg), **usual}

    def _columns(self, data: Sequence[Any]) -> Batch:
        return with_team_numbers(columns_of(data))

    # --- learning ------------------------------------------------------------------------------

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        alive = alive_of(batch["obs"])
        if alive is None:
            return super()._loss(batch)
        alive = alive.float()
        # Weights of mean 1 make every mean in the loss one over the living.
        weight = alive / alive.mean().clamp(min=1e-8)
        return super()._loss({**batch, "mask": alive, "weight": weight})

    def _known_returns(self, columns: Batch) -> np.ndarray:
        alive = alive_of(columns["obs"])
        return columns["return"] if alive is None else columns["return"][alive != 0]

    def _values(self, steps: Batch, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, last_value = super()._values(steps, end)
        of_team = steps["reward"].ndim == 1
        last_obs = take(steps["next_obs"], end)
        return (
            with_dead(value, steps["obs"], of_team),
            with_dead(last_value, last_obs, of_team),
        )

    # --- acting --------------------------------------------------------------------------------

    def _forward_collect(self, data: Mapping[int, Any], **kwargs: Any) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        check_masks(env_id, obs)
        logit = self._logit(obs)
        action = of_living(self._actions.sample(logit, self._rng), obs)
        return ByEnv(env_id, {"action": action, "logit": logit})

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        check_masks(env_id, obs)
        return ByEnv(env_id, {"action": of_living(self._actions.best(self._logit(obs)), obs)})


class IPPOPolicy(MAPPOPolicy):
    """Every agent learns by itself: its critic sees what it sees."""

    central_critic = False
