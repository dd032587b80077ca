"""RND: the error in predicting a random network's features of an observation as its novelty.

Burda et al. 2018, https://arxiv.org/abs/1810.12894
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from ding.model.curiosity import RndNetwork
from ding.reward_model.intrinsic import IntrinsicReward
from ding.utils.batch import Batch


class RndRewardModel(IntrinsicReward):
    needs: ClassVar[tuple[str, ...]] = ("next_obs",)

    def _new_network(self) -> nn.Module:
        return RndNetwork(self.cfg.obs_shape, self.cfg.hidden_size_list)

    def _loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        return self._novelty(batch).mean(), {}

    def _novelty(self, batch: Batch) -> Tensor:
        predicted, target = self._network(batch["next_obs"])
        return (predicted - target).square().mean(dim=-1)
