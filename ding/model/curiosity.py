"""Networks of intrinsic rewards: novelty by prediction error, embeddings by inverse dynamics.

Letters in shapes: B batch, F features, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.model.encoder import ObsShape, encoder_for, shape_of, size_of
from ding.torch_utils.blocks import one_hot
from ding.torch_utils.network import Activation, Layers, mlp, orthogonal_


class RndNetwork(nn.Module):
    """obs -> (predicted, target) features (B, F); the target is random and never trained.

    The last layer is linear: a unit of the predictor that a ReLU shuts could never learn again.

    https://arxiv.org/abs/1810.12894
    """

    def __init__(
        self,
        obs_shape: ObsShape,
        hidden_size_list: Sequence[int] = (64, 64, 128),
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.target, self.predictor = (
            Layers(encoder, nn.Linear(encoder.output_size, encoder.output_size))
            for encoder in (encoder_for(obs_shape, hidden_size_list, activation) for _ in range(2))
        )
        # As the paper's code: features of what was never seen differ enough to be noticed.
        orthogonal_(self)
        self.target.requires_grad_(False)

    def forward(self, obs: Any) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            target = self.target(obs)
        return self.predictor(obs), target


class InverseNetwork(nn.Module):
    """Which action led from one observation to the next; the features are NGU's embedding.

    https://arxiv.org/abs/2002.06038
    """

    def __init__(
        self,
        obs_shape: ObsShape,
        action_shape: int,
        hidden_size_list: Sequence[int] = (64, 64, 128),
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.embedding_net = encoder_for(obs_shape, hidden_size_list, activation)
        size = self.embedding_net.output_size
        n_action = shape_of(action_shape, "action_shape")[0]
        self.inverse_net = mlp([2 * size, 512, n_action], activation)

    def forward(self, inputs: Mapping[str, Any], inference: bool = False) -> Any:
        """{'obs', 'next_obs'} -> logits and probabilities (B, A); in inference 'obs' -> (B, F)."""
        features = self.embedding_net(inputs["obs"])
        if inference:
            return features
        both = torch.cat([features, self.embedding_net(inputs["next_obs"])], dim=-1)
        logit = self.inverse_net(both)
        return logit, logit.softmax(dim=-1)


class ICMNetwork(nn.Module):
    """(obs, next_obs, action) -> next features, their prediction, logits (or values) of the action.

    https://arxiv.org/abs/1705.05363
    """

    def __init__(
        self,
        obs_shape: ObsShape,
        action_shape: int,
        hidden_size_list: Sequence[int] = (64, 64, 128),
        activation: Activation = "relu",
        continuous: bool = False,
    ) -> None:
        super().__init__()
        self.n_action = size_of(action_shape, "action_shape")
        self.continuous = continuous
        self.feature = encoder_for(obs_shape, hidden_size_list, activation)
        size = self.feature.output_size
        self.inverse_net = mlp([2 * size, 512, self.n_action], activation)
        self.forward_net = mlp([size + self.n_action, 512, size], activation)

    def forward(self, obs: Any, next_obs: Any, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features, next_features = self.feature(obs), self.feature(next_obs)
        inverse = self.inverse_net(torch.cat([features, next_features], dim=-1))
        taken = self._taken(action)
        predicted = self.forward_net(torch.cat([features, taken], dim=-1))
        return next_features, predicted, inverse

    def _taken(self, action: Tensor) -> Tensor:
        """(B, A) numbers of the action."""
        if self.continuous:
            return action.float().reshape(-1, self.n_action)
        return one_hot(action.reshape(-1), self.n_action)
