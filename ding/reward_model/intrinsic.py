"""Intrinsic rewards: what is new to a network that learns from the agent's own samples.

Letters in shapes: N samples.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from ding.policy.config import at_least, one_of
from ding.reward_model.base import BaseRewardModel, RewardModelConfig, Samples
from ding.reward_model.obs_scale import ObsScale
from ding.torch_utils import Adam
from ding.torch_utils.running_statistics import RunningScale
from ding.utils.batch import Batch, Rows, columns_of, concat, length, take, tree_map
from ding.utils.data.collate_fn import as_tensor
from ding.utils.errors import ConfigError

TYPES = ("add", "new", "assign")
NORMS = ("running", "batch", "none")


@dataclass(frozen=True, kw_only=True)
class IntrinsicConfig(RewardModelConfig):
    obs_shape: Any = None
    """Shape of an observation; None: the env's."""
    hidden_size_list: list[int] = field(default_factory=lambda: [64, 64, 128])
    """Sizes of the encoders; for images one per convolution, then the fully connected ones."""
    batch_size: int = 64
    learning_rate: float = 1e-3
    update_per_collect: int = 100
    """Updates in each training."""
    intrinsic_reward_type: str = "add"
    """'add' to the env's reward, 'assign' in its place, or 'new': a column of its own."""
    intrinsic_reward_weight: float = 0.01
    """Factor of what is added."""
    intrinsic_reward_norm: str = "running"
    """Divide by a 'running' deviation, stretch each 'batch' to [0, 1], or 'none'."""
    extrinsic_reward_norm: bool = True
    """Divide the env's reward by the key below before adding."""
    extrinsic_reward_norm_max: float = 1.0
    obs_norm: bool = True
    """Normalise observations by running moments."""
    obs_norm_clamp_min: float = -1.0
    obs_norm_clamp_max: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("reward_model.intrinsic_reward_type", self.intrinsic_reward_type, TYPES)
        one_of("reward_model.intrinsic_reward_norm", self.intrinsic_reward_norm, NORMS)
        for name in ("batch_size", "update_per_collect"):
            at_least(f"reward_model.{name}", getattr(self, name), 1)
        weight = self.intrinsic_reward_weight
        if not 0 <= weight < float("inf"):
            raise ConfigError(
                f"reward_model.intrinsic_reward_weight = {weight}: must be a number from 0 on"
            )
        if self.extrinsic_reward_norm and not self.extrinsic_reward_norm_max > 0:
            raise ConfigError(
                f"reward_model.extrinsic_reward_norm_max = {self.extrinsic_reward_norm_max}: "
                "rewards are divided by it, so it must be above 0"
            )
        if not self.obs_norm_clamp_min < self.obs_norm_clamp_max:
            raise ConfigError(
                f"reward_model.obs_norm_clamp_min = {self.obs_norm_clamp_min} must be below "
                f"obs_norm_clamp_max = {self.obs_norm_clamp_max}"
            )


class IntrinsicReward(BaseRewardModel):
    """Base of novelty rewards: a network, what it has yet to learn from, and running scales."""

    config_class: ClassVar[type] = IntrinsicConfig
    cfg: IntrinsicConfig

    def __init__(
        self, config: Mapping[str, Any], device: str | torch.device = "cpu", tb_logger: Any = None
    ) -> None:
        super().__init__(config, device, tb_logger)
        if self.cfg.obs_shape is None:
            raise ConfigError("reward_model.obs_shape is missing: the shape of an observation")
        with self.own_torch_stream():
            self._network = self._new_network().to(self.device)
        learned = [p for p in self._network.parameters() if p.requires_grad]
        self._optimizer = Adam(learned, lr=self.cfg.learning_rate)
        self._obs_scale = ObsScale(self.cfg.obs_norm_clamp_min, self.cfg.obs_norm_clamp_max)
        self._scale = RunningScale()
        self._data: list[Batch] = []
        self._n_new = 0

    @abstractmethod
    def _new_network(self) -> nn.Module: ...

    @abstractmethod
    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Of tensors, with metrics."""

    @abstractmethod
    def _novelty(self, batch: Batch) -> Tensor:
        """(N,) what the network makes of samples that it should know by now."""

    def collect_data(self, data: Samples) -> None:
        columns = columns_of(data)
        kept = {name: columns[name] for name in self.needs}
        if self.cfg.obs_norm:
            self._obs_scale.update(kept["next_obs"])
        self._data.append(tree_map(np.array, kept))
        self._n_new += 1

    def clear_data(self) -> None:
        self._data, self._n_new = [], 0

    def train(self) -> dict[str, float]:
        columns = concat(self._data)
        count, logged = length(columns), {}
        for _ in range(self.cfg.update_per_collect):
            rows = self.rng.integers(count, size=min(self.cfg.batch_size, count))
            loss, metrics = self._loss(self._inputs(take(columns, rows)))
            self._optimizer.step_on(loss)
            logged = {"loss": loss.detach(), **metrics}
        self._scale.update(self.novelty(concat(self._data[-self._n_new :])))
        self._n_new = 0
        return {name: float(value) for name, value in logged.items()}

    def novelty(self, columns: Batch) -> np.ndarray:
        """(N,) errors of the network, as they are."""
        with torch.no_grad():
            return self._novelty(self._inputs(columns)).cpu().numpy()

    def estimate(self, data: Samples) -> Samples:
        columns = columns_of(data)
        intrinsic = self._scaled(self.novelty({name: columns[name] for name in self.needs}))
        reward = np.asarray(columns["reward"])
        intrinsic = intrinsic.reshape(-1, *[1] * (reward.ndim - 1)).astype(np.float32)
        if self.cfg.intrinsic_reward_type == "new":
            return Rows({**columns, "intrinsic_reward": intrinsic + np.zeros_like(reward)})
        if self.cfg.intrinsic_reward_type == "assign":
            return Rows({**columns, "reward": intrinsic + np.zeros_like(reward)})
        if self.cfg.extrinsic_reward_norm:
            reward = reward / np.float32(self.cfg.extrinsic_reward_norm_max)
        added = reward + np.float32(self.cfg.intrinsic_reward_weight) * intrinsic
        return Rows({**columns, "reward": added})

    def _scaled(self, novelty: np.ndarray) -> np.ndarray:
        if self.cfg.intrinsic_reward_norm == "running":
            return novelty / np.float32(self._scale.std)
        if self.cfg.intrinsic_reward_norm == "batch":
            low, high = novelty.min(), novelty.max()
            return (novelty - low) / (high - low + np.float32(1e-8))
        return novelty

    def _inputs(self, columns: Batch) -> Batch:
        """Tensors on the device, observations normalised."""
        if self.cfg.obs_norm:
            columns = dict(columns)
            for name in {"obs", "next_obs"} & columns.keys():
                columns[name] = self._obs_scale(columns[name])
        return tree_map(lambda leaf: as_tensor(np.asarray(leaf)).to(self.device), columns)

    def state_dict(self) -> dict[str, Any]:
        return {
            "network": self._network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "obs_scale": self._obs_scale.state_dict(),
            "scale": self._scale.state_dict(),
            "rng": self.rng.bit_generator.state,
            "data": self._data,
            "n_new": self._n_new,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._obs_scale.load_state_dict(state["obs_scale"])
        self._scale.load_state_dict(state["scale"])
        self.rng.bit_generator.state = state["rng"]
        self._data, self._n_new = list(state["data"]), state["n_new"]
