"""GAIL and AIRL: a discriminator between an expert's steps and the agent's as the reward.

Ho and Ermon 2016, https://arxiv.org/abs/1606.03476; Fu et al. 2018, https://arxiv.org/abs/1710.11248.
D(s, a) is the probability that a step is the agent's. Letters in shapes: N samples.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm

from ding.data.demo_formats import load_demonstrations
from ding.model.encoder import encoder_for, size_of
from ding.policy.config import at_least, one_of
from ding.reward_model.base import BaseRewardModel, RewardModelConfig, Samples
from ding.reward_model.obs_scale import ObsScale
from ding.torch_utils import Adam
from ding.torch_utils.network import mlp
from ding.utils.batch import Batch, Rows, columns_of, concat, length, take, tree_map
from ding.utils.data.collate_fn import as_tensor
from ding.utils.errors import ConfigError

logger = logging.getLogger(__name__)

REWARD_TYPES = ("neg_log_d", "log_1md", "logit")


@dataclass(frozen=True, kw_only=True)
class GailConfig(RewardModelConfig):
    data_path: str = ""
    """File of demonstrations."""
    n_episode: int | None = None
    """Only the first so many of its episodes; None: all."""
    obs_shape: Any = None
    action_shape: Any = None
    action_space: str | None = None
    """'discrete' or 'continuous'; these three are the env's unless given."""
    hidden_size: int = 128
    encoder_hidden_size_list: list[int] = field(default_factory=lambda: [32, 64, 64, 128])
    """Of the encoder of images; vectors have none."""
    batch_size: int = 64
    learning_rate: float = 1e-3
    update_per_collect: int = 100
    target_new_data_count: int = 64
    reward_type: str = "logit"
    """'neg_log_d': -log D, above 0; 'log_1md': log(1 - D), below 0; 'logit': their sum."""
    gradient_penalty: float = 1.0
    """Weight of the penalty of gradients away from 1 between expert and agent; 0: none."""
    spectral_norm: bool = False
    """Bound the discriminator's slope by the norms of its layers instead."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("reward_model.reward_type", self.reward_type, REWARD_TYPES)
        at_least("reward_model.gradient_penalty", self.gradient_penalty, 0)
        for name in ("batch_size", "update_per_collect", "hidden_size"):
            at_least(f"reward_model.{name}", getattr(self, name), 1)


class Discriminator(nn.Module):
    """Features of observations and numbers of actions -> logits (N,): above 0 for the agent."""

    def __init__(self, cfg: GailConfig) -> None:
        super().__init__()
        is_image = isinstance(cfg.obs_shape, (list, tuple)) and len(cfg.obs_shape) == 3
        self.encoder: nn.Module = nn.Flatten()
        size = cfg.obs_shape if isinstance(cfg.obs_shape, int) else 0
        if is_image or isinstance(cfg.obs_shape, Mapping):
            encoder = encoder_for(cfg.obs_shape, cfg.encoder_hidden_size_list)
            self.encoder, size = encoder, encoder.output_size
        elif not size:
            size = size_of(cfg.obs_shape, "obs_shape")
        n_action = size_of(cfg.action_shape, "action_shape")
        self.main = mlp([size + n_action, cfg.hidden_size, cfg.hidden_size, 1], "tanh")
        if cfg.spectral_norm:
            for layer in [layer for layer in self.main.modules() if isinstance(layer, nn.Linear)]:
                spectral_norm(layer)

    def forward(self, obs: Any, action: Tensor) -> Tensor:
        return self.main(torch.cat([self.encoder(obs), action], dim=-1)).squeeze(-1)


class GailRewardModel(BaseRewardModel):
    config_class: ClassVar[type] = GailConfig
    needs: ClassVar[tuple[str, ...]] = ("obs", "action")
    cfg: GailConfig

    def __init__(
        self, config: Mapping[str, Any], device: str | torch.device = "cpu", tb_logger: Any = None
    ) -> None:
        super().__init__(config, device, tb_logger)
        for name in ("obs_shape", "action_shape"):
            if getattr(self.cfg, name) is None:
                raise ConfigError(f"reward_model.{name} is missing; runs take it from the env")
        with self.own_torch_stream():
            self._network = Discriminator(self.cfg).to(self.device)
        self._optimizer = Adam(self._network.parameters(), lr=self.cfg.learning_rate)
        self._obs_scale = ObsScale(-10.0, 10.0)
        self._expert: Batch | None = None
        self._data: list[Batch] = []
        self._warned = False
        if self.cfg.data_path:
            found = load_demonstrations(self.cfg.data_path)
            self.load_expert_data(found.episodes(slice(self.cfg.n_episode)).steps())

    def load_expert_data(self, data: Samples) -> None:
        columns = columns_of(data)
        self._expert = {name: columns[name] for name in self.needs}
        self._obs_scale.update(self._expert["obs"])
        over = np.asarray(columns.get("done", False)) & ~np.asarray(columns.get("truncated", False))
        self._warn_of_survival(bool(over.any()))

    def collect_data(self, data: Samples) -> None:
        columns = columns_of(data)
        self._data.append(tree_map(np.array, {name: columns[name] for name in self.needs}))
        if "done" in columns and not self._warned:
            over = np.asarray(columns["done"]).astype(bool)
            cut = np.asarray(columns.get("truncated", np.zeros_like(over))).astype(bool)
            self._warn_of_survival(bool((over & ~cut).any()))

    def _warn_of_survival(self, terminates: bool) -> None:
        """Rewards of one sign teach how long to live, whatever the expert does."""
        sign = {"neg_log_d": "positive", "log_1md": "negative"}.get(self.cfg.reward_type)
        if not terminates or sign is None or self._warned:
            return
        self._warned = True
        effect = "to stay alive" if sign == "positive" else "to end episodes early"
        logger.warning(
            "episodes of this env can terminate, and every reward of reward_type = '%s' is %s: "
            "the agent learns %s, whatever the expert does; use reward_type = 'logit', or episodes "
            "of a fixed length",
            *(self.cfg.reward_type, sign, effect),
        )

    def clear_data(self) -> None:
        self._data = []

    def train(self) -> dict[str, float]:
        if self._expert is None:
            raise ConfigError(
                "reward model 'gail' has no demonstrations; set reward_model.data_path to a file "
                "of `ding demo make`, or call load_expert_data"
            )
        agent, logged = concat(self._data), {}
        for _ in range(self.cfg.update_per_collect):
            loss, metrics = self._loss(self._drawn(agent), self._drawn(self._expert))
            self._optimizer.step_on(loss)
            logged = {"loss": loss.detach(), **metrics}
        return {name: float(value) for name, value in logged.items()}

    def _drawn(self, columns: Batch) -> tuple[Any, Tensor]:
        rows = self.rng.integers(length(columns), size=self.cfg.batch_size)
        return self._inputs(take(columns, rows))

    def _loss(
        self, agent: tuple[Any, Tensor], expert: tuple[Any, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """-(mean log D(agent) + mean log(1 - D(expert))), and the gradient penalty."""
        of_agent, of_expert = self._network(*agent), self._network(*expert)
        loss = F.softplus(-of_agent).mean() + F.softplus(of_expert).mean()
        metrics = {
            "agent_accuracy": (of_agent.detach() > 0).float().mean(),
            "expert_accuracy": (of_expert.detach() < 0).float().mean(),
        }
        if self.cfg.gradient_penalty:
            loss = loss + self.cfg.gradient_penalty * self._penalty(agent, expert)
        return loss, metrics

    def _penalty(self, agent: tuple[Any, Tensor], expert: tuple[Any, Tensor]) -> Tensor:
        """Gulrajani et al. 2017, https://arxiv.org/abs/1704.00028, equation 3; between samples."""
        share = self.rng.random((self.cfg.batch_size, 1)).astype(np.float32)
        mixed: list[Any] = []
        for one, other in zip(agent, expert, strict=True):
            mixed.append(_between(one, other, torch.from_numpy(share).to(self.device)))
        leaves = [leaf for part in mixed for leaf in _leaves(part)]
        logit = self._network(*mixed).sum()
        grads = torch.autograd.grad(logit, leaves, create_graph=True)
        squares = torch.stack([grad.flatten(1).square().sum(dim=1) for grad in grads])
        return ((squares.sum(dim=0) + 1e-8).sqrt() - 1).square().mean()

    def estimate(self, data: Samples) -> Samples:
        columns = columns_of(data)
        with torch.no_grad():
            logit = self._network(*self._inputs({name: columns[name] for name in self.needs}))
        reward = self._reward(logit).cpu().numpy().astype(np.float32)
        old = np.asarray(columns["reward"])
        reward = reward.reshape(-1, *[1] * (old.ndim - 1)) + np.zeros(old.shape, np.float32)
        return Rows({**columns, "reward": reward})

    def _reward(self, logit: Tensor) -> Tensor:
        """D = sigmoid(logit)."""
        if self.cfg.reward_type == "neg_log_d":
            return F.softplus(-logit)
        if self.cfg.reward_type == "log_1md":
            return -F.softplus(logit)
        return -logit  # log(1 - D) - log D

    def _inputs(self, columns: Batch) -> tuple[Any, Tensor]:
        obs = tree_map(
            lambda leaf: as_tensor(leaf).to(self.device), self._obs_scale(columns["obs"])
        )
        action = as_tensor(np.asarray(columns["action"])).to(self.device)
        if self.cfg.action_space == "continuous":
            return obs, action.float().reshape(len(action), -1)
        n_action = size_of(self.cfg.action_shape, "action_shape")
        return obs, F.one_hot(action.long().reshape(-1), n_action).float()

    def state_dict(self) -> dict[str, Any]:
        return {
            "network": self._network.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "obs_scale": self._obs_scale.state_dict(),
            "rng": self.rng.bit_generator.state,
            "data": self._data,
            "warned": self._warned,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._obs_scale.load_state_dict(state["obs_scale"])
        self.rng.bit_generator.state = state["rng"]
        self._data, self._warned = list(state["data"]), state["warned"]


def _leaves(part: Any) -> list[Tensor]:
    return (
        [leaf for value in part.values() for leaf in _leaves(value)]
        if isinstance(part, dict)
        else [part]
    )


def _between(one: Any, other: Any, share: Tensor) -> Any:
    """Points between samples, whose gradients can be asked for."""
    if isinstance(one, dict):
        return {name: _between(one[name], other[name], share) for name in one}
    weight = share.reshape(-1, *[1] * (one.ndim - 1))
    return (weight * one + (1 - weight) * other).requires_grad_()
