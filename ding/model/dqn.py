"""Q network for discrete actions: encoder, then a (dueling) head per action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from ding.model.action_mask import split_mask, wraps_obs
from ding.model.encoder import Encoder, ObsShape, encoder_for, shape_of
from ding.model.head import DiscreteHead, DuelingHead, head_for
from ding.torch_utils.network import Activation


class QNetwork(nn.Module):
    """obs -> what `head` makes of the features of `encoder`, with the mask that came along.

    Options of a call are for the head.
    """

    head: nn.Module

    def __init__(
        self,
        obs_shape: ObsShape,
        encoder_hidden_size_list: Sequence[int],
        activation: Activation,
        norm_type: str | None,
    ) -> None:
        super().__init__()
        self.wraps_obs = wraps_obs(obs_shape)
        self.encoder: Encoder = encoder_for(
            obs_shape, encoder_hidden_size_list, activation, norm_type
        )

    def _new_head(
        self,
        head_cls: type[nn.Module],
        action_shape: int | Sequence[int],
        hidden_size: int | None,
        **options: Any,
    ) -> nn.Module:
        """Head on the features, by default as wide as they are; several actions get one each."""
        n_action, size = shape_of(action_shape, "action_shape"), self.encoder.output_size
        return head_for(head_cls, n_action, hidden_size or size, in_size=size, **options)

    def forward(self, x: Any, **head_options: Any) -> dict[str, Any]:
        obs, mask = split_mask(x, self.wraps_obs)
        return {**self.head(self.encoder(obs), **head_options), **mask}


class DQN(QNetwork):
    """obs -> {'logit': (B, A)}, or a list of logits when `action_shape` lists several actions."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        dueling: bool = True,
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = self._new_head(
            DuelingHead if dueling else DiscreteHead,
            action_shape,
            head_hidden_size,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
        )
