"""Critic of intrinsic rewards, which have a discount of their own and need not end with episodes.

Burda et al. 2018, section 2.3, https://arxiv.org/abs/1810.12894: the advantages of both streams are
added up. Letters in shapes: B batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ding.model.encoder import encoder_for
from ding.policy.config import within
from ding.rl_utils.gae import flat_advantages
from ding.torch_utils import Adam
from ding.torch_utils.network import Layers
from ding.torch_utils.running_statistics import RunningScale
from ding.utils.batch import Batch, take, tree_map
from ding.utils.data.collate_fn import as_tensor
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class IntrinsicReturnConfig:
    weight: float = 0.5
    """Factor of the advantages of intrinsic rewards beside those of the env's."""
    discount_factor: float = 0.99
    episodic: bool = False
    """Whether intrinsic returns end with an episode; novelty goes on after a failure."""
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        within("policy.intrinsic.discount_factor", self.discount_factor, 0, 1)
        if not 0 <= self.weight < float("inf"):
            raise ConfigError(f"policy.intrinsic.weight = {self.weight}: must be 0 or more")


class IntrinsicCritic:
    """Value network, optimizer and scale of intrinsic returns."""

    def __init__(
        self,
        cfg: IntrinsicReturnConfig,
        model_cfg: Mapping[str, Any],
        seen: Callable[[Any], Any],
        device: torch.device,
    ) -> None:
        """`seen`: observations as networks get them."""
        self._cfg, self._seen, self._device = cfg, seen, device
        sizes = model_cfg.get("encoder_hidden_size_list") or [64, 64]
        encoder = encoder_for(model_cfg["obs_shape"], sizes, model_cfg.get("activation", "relu"))
        self._network = Layers(encoder, nn.Linear(encoder.output_size, 1)).to(device)
        self._optimizer = Adam(self._network.parameters(), lr=cfg.learning_rate)
        self._scale = RunningScale()

    def advantages(
        self, steps: Batch, end: np.ndarray, terminated: np.ndarray, lambda_: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Advantages and returns (B,) of steps one after the other; `end`: of a trajectory."""
        value = self._values(steps["obs"])
        next_value = np.empty_like(value)
        next_value[:-1] = value[1:]
        next_value[end] = self._values(take(steps["next_obs"], end))
        gamma = self._cfg.discount_factor
        over = terminated if self._cfg.episodic else np.zeros_like(terminated)
        advantage = flat_advantages(
            np.asarray(steps["intrinsic_reward"]),
            value,
            next_value,
            discount=np.where(over, 0.0, gamma),
            decay=np.where(end, 0.0, gamma * lambda_),
        )
        return advantage, advantage + value

    def update_scale(self, returns: np.ndarray) -> None:
        self._scale.update(returns)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """One step towards the returns of a batch of tensors."""
        value = self._network(batch["obs"]).squeeze(-1)
        loss = (value - batch["intrinsic_return"] / self._scale.std).square().mean()
        self._optimizer.step_on(loss)
        return {"intrinsic_value_loss": loss.detach()}

    @torch.no_grad()
    def _values(self, obs: Any) -> np.ndarray:
        inputs = tree_map(lambda leaf: as_tensor(leaf).to(self._device), self._seen(obs))
        value = self._network(inputs).squeeze(-1).cpu().numpy()
        return value * np.float32(self._scale.std)

    def state_dict(self) -> dict[str, Any]:
        return {
            "network": self._network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "scale": self._scale.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._scale.load_state_dict(state["scale"])
