"""NGU: a family of R2D2 policies in one network, from one that exploits to the most curious one.

Badia et al. 2020, https://arxiv.org/abs/2002.06038

Each collecting env follows one policy of the family. Its index, the column `beta`, says how much of
an intrinsic reward it wants, how far it looks ahead and how often it acts at random; the network
sees the index, and the action and the extrinsic reward that came before. Index 0 wants none of the
intrinsic reward: it is the one to evaluate. Targets are the n-step ones of R2D2, not Retrace.
Letters in shapes: T steps of a sequence, B batch, N envs and policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.policy.config import at_least, within
from ding.policy.dqn import DQNCollectConfig
from ding.policy.r2d2 import R2D2Config, R2D2OtherConfig, R2D2Policy
from ding.utils.batch import Batch, ByEnv, stacked_of
from ding.utils.errors import ConfigError

_OBS_KEYS = ("obs", "prev_action", "prev_reward_extrinsic")


@dataclass(frozen=True, kw_only=True)
class NGUEpsConfig:
    """Policy i of N acts at random with probability base ** (1 + alpha * i / (N - 1))."""

    base: float = 0.4
    alpha: float = 8.0

    def __post_init__(self) -> None:
        within("policy.other.eps.base", self.base, 0, 1)
        at_least("policy.other.eps.alpha", self.alpha, 0)


@dataclass(frozen=True, kw_only=True)
class NGUCollectConfig(DQNCollectConfig):
    env_num: int = 8
    """Policies in the family, one for each env; follows env.collector_env_num."""


@dataclass(frozen=True, kw_only=True)
class NGUOtherConfig(R2D2OtherConfig):
    # The family has its rates side by side: none of them falls with time as those of DQN do.
    eps: NGUEpsConfig = field(default_factory=NGUEpsConfig)  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class NGUConfig(R2D2Config):
    discount_factor_min: float = 0.99
    """Gamma of the most curious policy; that of index 0 is `discount_factor`."""
    beta_max: float = 0.3
    """Factor of the intrinsic reward for the most curious policy; index 0 has none of it."""
    collect: NGUCollectConfig = field(default_factory=NGUCollectConfig)
    other: NGUOtherConfig = field(default_factory=NGUOtherConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("policy.collect.env_num", self.collect.env_num, 1)
        at_least("policy.beta_max", self.beta_max, 0)
        low, high = self.discount_factor_min, self.discount_factor
        if not 0 <= low <= high < 1:
            raise ConfigError(
                f"policy.discount_factor_min = {low}, policy.discount_factor = {high}: must be at "
                "least 0, below 1, and the first not above the second"
            )
        given = self.model.get("collector_env_num", self.collect.env_num)
        if given != self.collect.env_num:
            raise ConfigError(
                f"policy.model.collector_env_num = {given}: follows env.collector_env_num "
                f"(= {self.collect.env_num}); leave it out"
            )


class NGUPolicy(R2D2Policy):
    config_class = NGUConfig
    keeps_to_masks = False
    sequence_columns = (*R2D2Policy.sequence_columns, "beta", *_OBS_KEYS[1:], "reward_extrinsic")
    cfg: NGUConfig

    @classmethod
    def _model_name(cls, policy_cfg: Mapping[str, Any]) -> str:
        return "ngu"

    @classmethod
    def _model_defaults(cls, policy_cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {"collector_env_num": policy_cfg["collect"]["env_num"]}

    # --- learning ------------------------------------------------------------------------------

    def _init_learn(self) -> None:
        super()._init_learn()
        betas = family_betas(self.cfg.collect.env_num, self.cfg.beta_max)
        self._betas = torch.from_numpy(betas).to(self._device)

    def _batch(self, data: Any) -> Batch:
        """Batch with the inputs of the network as `obs`, `next_obs`, and the `reward` to learn."""
        batch = super()._batch(data)
        now = {key: batch[key] for key in (*_OBS_KEYS, "beta")}
        after = {
            "obs": batch["next_obs"],
            "prev_action": batch["action"],
            "prev_reward_extrinsic": batch["reward_extrinsic"],
            "beta": batch["beta"],
        }
        reward = learned_reward(batch, self._betas)
        return {**batch, "obs": now, "next_obs": after, "reward": reward}

    # --- acting --------------------------------------------------------------------------------

    def _init_collect(self) -> None:
        super()._init_collect()
        low, high = self.cfg.discount_factor_min, self.cfg.discount_factor
        self._discounts = family_discounts(self.cfg.collect.env_num, low, high)

    def _forward_collect(  # type: ignore[override]
        self, data: Mapping[int, Any], eps: float | Mapping[int, float] = 0.0
    ) -> Mapping[int, Any]:
        """`eps` is the same for all, or by index."""
        env_id, obs = stacked_of(data)
        beta = env_id % self.cfg.collect.env_num
        rates = np.array([eps[i] for i in beta.tolist()]) if isinstance(eps, Mapping) else eps
        acted = super()._forward_collect(ByEnv(env_id, seen(obs, beta)), rates)
        return ByEnv(env_id, {**stacked_of(acted)[1], "beta": beta})

    def _process_transition(
        self, obs: Any, policy_output: dict[str, Any], timestep: Any
    ) -> dict[str, Any]:
        step = super()._process_transition(obs, policy_output, timestep)
        after = seen(timestep.obs, policy_output["beta"])
        return {
            **step,
            **seen(obs, policy_output["beta"]),
            "next_obs": after["obs"],
            # Not always the `reward`: that may be clipped, or made another by a reward model.
            "reward_extrinsic": after["prev_reward_extrinsic"],
            "value_gamma": self._discounts[policy_output["beta"]],
        }

    def _forward_eval(self, data: Mapping[int, Any]) -> Mapping[int, Any]:
        env_id, obs = stacked_of(data)
        return super()._forward_eval(ByEnv(env_id, seen(obs, np.zeros_like(env_id))))

    def _init_command(self) -> None:
        eps = self.cfg.other.eps
        self._rates = family_epsilons(self.cfg.collect.env_num, eps.base, eps.alpha).tolist()

    def _get_setting_collect(self, command_info: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {"eps": dict(enumerate(self._rates))}


def learned_reward(batch: Batch, betas: Tensor) -> Tensor:
    """(B, T): the extrinsic reward, and of the intrinsic one what each sequence's policy wants.

    The seam for reward models: they put a column `intrinsic_reward` (B, T) into the samples before
    they are learned from, and leave `reward` alone. Without it there is no intrinsic reward.
    """
    intrinsic = batch.get("intrinsic_reward")
    if intrinsic is None:
        return batch["reward"]
    return batch["reward"] + betas[batch["beta"]] * intrinsic


def seen(obs: Any, beta: np.ndarray) -> Batch:
    """Input of the network for (N,) envs that follow the policies `beta`."""
    if not isinstance(obs, dict) or not obs.keys() >= set(_OBS_KEYS):
        raise ConfigError(
            f"policy 'ngu' needs observations with {', '.join(_OBS_KEYS)}; set "
            "env.env_wrapper = ['obs_plus_prev_action_reward']"
        )
    reward = np.asarray(obs["prev_reward_extrinsic"], dtype=np.float32).reshape(beta.shape)
    return {
        "obs": obs["obs"],
        "prev_action": obs["prev_action"],
        "prev_reward_extrinsic": reward,
        "beta": beta,
    }


def family_epsilons(n: int, base: float, alpha: float) -> np.ndarray:
    """(N,): how often each policy acts at random."""
    return base ** (1 + alpha * _shares(n))


def family_discounts(n: int, low: float, high: float) -> np.ndarray:
    """(N,) float32 from `high` to `low`: 1 - gamma grows by the same factor each time."""
    share = _shares(n)
    rates = np.exp((1 - share) * np.log(1 - high) + share * np.log(1 - low))
    return (1 - rates).astype(np.float32)


def family_betas(n: int, highest: float) -> np.ndarray:
    """(N,) float32: zero, then along a sigmoid, then the highest."""
    if n == 1:
        return np.zeros(1, dtype=np.float32)
    index = np.arange(n)
    betas = highest / (1 + np.exp(-10 * (2 * index - (n - 2)) / max(n - 2, 1)))
    betas[0], betas[-1] = 0, highest
    return betas.astype(np.float32)


def _shares(n: int) -> np.ndarray:
    """Positions from 0 for the first to 1 for the last; a single one is the first."""
    return np.arange(n) / max(n - 1, 1)
