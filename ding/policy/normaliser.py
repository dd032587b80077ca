"""Normalisers: running statistics of observations and returns, shared by all envs of a policy.

They are part of what acting needs, so they are saved and published with the weights. Collecting
gathers new moments beside those in force; they are merged only after the samples they came with
have been learned from, so that acting and learning see the same numbers. Evaluation gathers none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from ding.envs.base_env import VecStep
from ding.policy.config import PolicyConfig
from ding.torch_utils.running_statistics import Moments
from ding.utils.batch import Batch, ByEnv, stacked_of
from ding.utils.errors import ConfigError

_EPS = 1e-8

_FLAGS = ("mask", "alive", "flag", "flags")
"""Ends of the names of inputs that say yes or no, in whatever dtype: what they say stays."""

PlainMoments = dict[str, dict[str, Any]]
"""Moments by the path of what they are of, in plain values."""


Statistics = dict[str, PlainMoments]
"""Moments that acting gathered, by normaliser."""


class Normalisers:
    """Normalisers of one policy: of observations, of rewards, of both or of nothing."""

    def __init__(self, cfg: PolicyConfig) -> None:
        self.parts: dict[str, ObsNormaliser | RewardNormaliser] = {}
        """By the name of their setting."""
        self._obs: ObsNormaliser | None = None
        self._reward: RewardNormaliser | None = None
        if cfg.obs_norm:
            self._obs = self.parts["obs_norm"] = ObsNormaliser(cfg.obs_norm_range)
        if cfg.reward_norm:
            gamma = cfg.reward_norm_discount or cfg.discount_factor
            self._reward = self.parts["reward_norm"] = RewardNormaliser(gamma)

    def seen(self, obs: Any) -> Any:
        """Stacked observations as the networks see them."""
        return obs if self._obs is None else self._obs(obs)

    def scaled(self, reward: np.ndarray) -> np.ndarray:
        """Rewards as learning sees them."""
        return reward if self._reward is None else reward * self._reward.scale

    def columns(self, columns: Batch) -> Batch:
        """Samples as learning sees them."""
        normalised = dict(columns)
        for name in ("obs", "next_obs"):
            if name in columns:
                normalised[name] = self.seen(columns[name])
        if "reward" in columns:
            normalised["reward"] = self.scaled(columns["reward"])
        return normalised

    def around(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """`forward` of a mode, on observations as the networks see them."""
        if self._obs is None:
            return forward

        def normalised(data: Mapping[int, Any], **kwargs: Any) -> Any:
            env_id, obs = stacked_of(data)
            return forward(ByEnv(env_id, self.seen(obs)), **kwargs)

        return normalised

    def observe(self, obs: Any, step: VecStep) -> None:
        """Gather moments of stacked observations and of their steps."""
        if self._obs is not None:
            self._obs.gather(obs)
        if self._reward is not None:
            self._reward.gather(step.env_id, step.reward, step.done)

    def take_gathered(self) -> Statistics:
        return {name: part.take_gathered() for name, part in self.parts.items()}

    def merge(self, statistics: Statistics) -> None:
        """Take moments, of any collector, into those in force."""
        for name, part in self.parts.items():
            part.merge(statistics.get(name, {}))

    def memory(self) -> dict[str, Any]:
        """State of the running episodes."""
        return {name: part.memory() for name, part in self.parts.items()}

    def remember(self, memory: Mapping[str, Any]) -> None:
        for name, part in self.parts.items():
            part.remember(memory[name])


class Normaliser:
    """Moments in force, and those gathered since they were last taken."""

    def __init__(self) -> None:
        self._moments: dict[str, Moments] = {}
        self._gathered: dict[str, Moments] = {}

    def _note(self, path: str, rows: np.ndarray) -> None:
        _merge(self._gathered, path, Moments.of(rows))

    def take_gathered(self) -> PlainMoments:
        """Moments gathered since the last call, in values that `merge` takes anywhere."""
        gathered, self._gathered = self._gathered, {}
        return _plain(gathered)

    def merge(self, gathered: PlainMoments) -> None:
        for path, plain in gathered.items():
            _merge(self._moments, path, Moments(**plain))
        self._apply()

    def _apply(self) -> None:
        """Take the moments in force into use."""

    def state_dict(self) -> dict[str, Any]:
        return _plain(self._moments)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._moments = {path: Moments(**plain) for path, plain in state.items()}
        self._apply()

    def memory(self) -> dict[str, Any]:
        """State of the running episodes."""
        return {"gathered": _plain(self._gathered)}

    def remember(self, memory: Mapping[str, Any]) -> None:
        self._gathered = {path: Moments(**plain) for path, plain in memory["gathered"].items()}


class ObsNormaliser(Normaliser):
    """Observations less their mean, over their deviation, within `clip_range`.

    Every array of floats in an observation has moments of its own; integers (frames) and what is
    called a mask, `alive` or a flag pass. Of an observation with other inputs beside it
    (`{"obs": ..., "action_mask": ...}`) only `obs` counts.
    """

    def __init__(self, clip_range: tuple[float, float]) -> None:
        super().__init__()
        self._low, self._high = clip_range
        self._shift_scale: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, obs: Any, path: str = "") -> Any:
        """Stacked observations, with any number of leading axes, on the scale of the policy."""
        if isinstance(obs, dict):
            seen = {key: self(obs[key], path + step) for key, step in _counting(obs)}
            return {**obs, **seen}
        if isinstance(obs, tuple):
            return tuple(self(value, f"{path}/{i}") for i, value in enumerate(obs))
        if not _is_float(obs) or path not in self._shift_scale:
            return obs
        mean, scale = self._shift_scale[path]
        return ((obs - mean) * scale).clip(self._low, self._high)

    def in_torch(self) -> ObsNormaliser:
        """The same for tensors, with the moments of now."""
        twin = ObsNormaliser((self._low, self._high))
        twin._shift_scale = {
            path: (torch.from_numpy(mean), torch.from_numpy(scale))  # type: ignore[misc]
            for path, (mean, scale) in self._shift_scale.items()
        }
        return twin

    def gather(self, obs: Any) -> None:
        """Note stacked observations that were acted on."""
        leaves = list(_float_leaves(obs))
        if not leaves:
            raise ConfigError(
                "policy.obs_norm = True, but the env's observations have no floats to normalise "
                "(frames are scaled by the encoder); leave obs_norm out"
            )
        for path, leaf in leaves:
            self._note(path, leaf)

    def _apply(self) -> None:
        self._shift_scale = {
            path: (m.mean.astype(np.float32), (1.0 / (m.scale + _EPS)).astype(np.float32))
            for path, m in self._moments.items()
        }


class RewardNormaliser(Normaliser):
    """Rewards over the deviation of the discounted return so far.

    Engstrom et al. 2020, https://arxiv.org/abs/2005.12729
    """

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self._gamma = gamma
        self._returns: dict[int, float] = {}
        self.scale = np.float32(1.0)

    def gather(self, env_id: np.ndarray, reward: np.ndarray, done: np.ndarray) -> None:
        """Note one step of each of these envs."""
        if reward.ndim > 1:
            raise ConfigError(
                "policy.reward_norm = True, but the env's rewards are vectors "
                f"{reward.shape[1:]}; leave it out"
            )
        ids = env_id.tolist()
        before = np.array([self._returns.get(i, 0.0) for i in ids])
        returns = self._gamma * before + reward
        self._note("return", returns)
        self._returns.update(zip(ids, (returns * ~done).tolist(), strict=True))

    def _apply(self) -> None:
        if "return" in self._moments:
            self.scale = np.float32(1.0 / (self._moments["return"].scale + _EPS))

    def memory(self) -> dict[str, Any]:
        return {**super().memory(), "returns": dict(self._returns)}

    def remember(self, memory: Mapping[str, Any]) -> None:
        super().remember(memory)
        self._returns = dict(memory["returns"])


def _plain(moments: Mapping[str, Moments]) -> PlainMoments:
    return {path: m.plain() for path, m in moments.items()}


def _merge(moments: dict[str, Moments], path: str, more: Moments) -> None:
    if path in moments:
        moments[path].merge(more)
    else:
        moments[path] = more


def _is_float(leaf: Any) -> bool:
    if isinstance(leaf, torch.Tensor):
        return leaf.is_floating_point()
    return isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"


def _counting(obs: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names of the inputs that are normalised, each with its step of the path."""
    if "obs" in obs:
        return [("obs", "")]
    return [(key, f"/{key}") for key in obs if not str(key).endswith(_FLAGS)]


def _float_leaves(obs: Any, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(obs, dict):
        for key, step in _counting(obs):
            yield from _float_leaves(obs[key], path + step)
    elif isinstance(obs, tuple):
        for i, value in enumerate(obs):
            yield from _float_leaves(value, f"{path}/{i}")
    elif _is_float(obs):
        yield path, obs
