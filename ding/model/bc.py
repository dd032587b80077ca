"""Actor alone, for continuous actions: what behaviour cloning fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from ding.model.action_mask import split_mask, wraps_obs
from ding.model.actor_critic import encoded, encoders_of
from ding.model.encoder import ObsShape, size_of
from ding.model.head import RegressionHead, ReparameterizationHead
from ding.torch_utils.network import Activation
from ding.utils.errors import ConfigError, nearest

_SPACES = ("regression", "reparameterization")


class ContinuousBC(nn.Module):
    """{'action': (B, A)} within [-1, 1], or {'logit': {'mu', 'sigma'}} of a Gaussian.

    Without `encoder_hidden_size_list` a vector goes through `1 + actor_head_layer_num` hidden
    layers, as in `QAC`; images and dicts need an encoder.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        action_space: str = "regression",
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        encoder_hidden_size_list: Sequence[int] | None = None,
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        if action_space not in _SPACES:
            raise ConfigError(
                f"unknown action_space '{action_space}'{nearest(action_space, _SPACES)}"
            )
        self.wraps_obs, self.action_space = wraps_obs(obs_shape), action_space
        self.encoder, _, size = encoders_of(
            obs_shape, encoder_hidden_size_list, True, activation, norm_type
        )
        options: dict[str, Any] = {
            "layer_num": actor_head_layer_num + (self.encoder is None),
            "activation": activation,
            "norm_type": norm_type,
            "in_size": size,
        }
        hidden, n_action = actor_head_hidden_size, size_of(action_shape, "action_shape")
        self.head: nn.Module
        if action_space == "regression":
            self.head = RegressionHead(hidden, n_action, final_tanh=True, squeeze=False, **options)
        else:
            self.head = ReparameterizationHead(
                hidden, n_action, sigma_type="conditioned", bound_type="tanh", **options
            )

    def forward(self, x: Any) -> dict[str, Any]:
        obs, _ = split_mask(x, self.wraps_obs)
        output = self.head(encoded(self.encoder, obs))
        return (
            {"action": output["pred"]} if self.action_space == "regression" else {"logit": output}
        )
