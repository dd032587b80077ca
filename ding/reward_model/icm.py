"""ICM: the error in predicting features of the next observation from action and features.

The features are those that tell which action was taken, so what the agent can't influence counts
for nothing. Pathak et al. 2017, https://arxiv.org/abs/1705.05363
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from ding.model.curiosity import ICMNetwork
from ding.policy.config import one_of
from ding.reward_model.intrinsic import IntrinsicConfig, IntrinsicReward
from ding.utils.batch import Batch
from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ICMConfig(IntrinsicConfig):
    action_shape: Any = None
    """Number of actions, or size of a continuous one; None: the env's."""
    action_space: str | None = None
    """'discrete' or 'continuous'; None: as the env's."""
    reverse_scale: float = 1.0
    """Weight of the inverse model's loss beside the forward model's."""
    intrinsic_reward_weight: float = 0.003
    clear_buffer_per_iters: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.action_space is not None:
            one_of("reward_model.action_space", self.action_space, ("discrete", "continuous"))


class ICMRewardModel(IntrinsicReward):
    config_class: ClassVar[type] = ICMConfig
    needs: ClassVar[tuple[str, ...]] = ("obs", "action", "next_obs")
    cfg: ICMConfig

    def _new_network(self) -> nn.Module:
        if self.cfg.action_shape is None:
            raise ConfigError("reward_model.action_shape is missing: the number of actions")
        return ICMNetwork(
            self.cfg.obs_shape,
            self.cfg.action_shape,
            self.cfg.hidden_size_list,
            continuous=self.cfg.action_space == "continuous",
        )

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        next_features, predicted, action = self._network(**self._arguments(batch))
        taken = batch["action"]
        if self.cfg.action_space == "continuous":
            inverse = F.mse_loss(action, taken.reshape(action.shape).float())
        else:
            inverse = F.cross_entropy(action, taken.reshape(-1).long())
        forward = (predicted - next_features).square().mean()
        metrics = {"inverse_loss": inverse.detach(), "forward_loss": forward.detach()}
        return self.cfg.reverse_scale * inverse + forward, metrics

    def _novelty(self, batch: Batch) -> Tensor:
        next_features, predicted, _ = self._network(**self._arguments(batch))
        return (predicted - next_features).square().mean(dim=-1)

    def _arguments(self, batch: Batch) -> Batch:
        return {name: batch[name] for name in self.needs}
