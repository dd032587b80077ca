"""Networks of policy gradients: PG without a critic, PPG with two, ACER with action values.

Letters in shapes: B batch, A actions (or dimensions of the action).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from torch import nn

from ding.model.action_mask import split_mask
from ding.model.actor_critic import VAC, DiscreteQAC
from ding.model.dqn import QNetwork
from ding.model.encoder import ObsShape, size_of
from ding.model.head import DiscreteHead, ReparameterizationHead
from ding.torch_utils.network import Activation
from ding.utils.errors import ConfigError, nearest


class PG(QNetwork):
    """{'logit': (B, A)}, or {'logit': {'mu', 'sigma'}} for continuous actions."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        action_space: str = "discrete",
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        sigma_type: str = "independent",
    ) -> None:
        super().__init__(obs_shape, encoder_hidden_size_list, activation, norm_type)
        spaces = ("discrete", "continuous")
        if action_space not in spaces:
            raise ConfigError(
                f"unknown action_space '{action_space}'{nearest(action_space, spaces)}"
            )
        self.action_space = action_space
        options: dict[str, Any] = {
            "layer_num": head_layer_num,
            "activation": activation,
            "norm_type": norm_type,
        }
        if action_space == "discrete":
            self.head = self._new_head(DiscreteHead, action_shape, head_hidden_size, **options)
        else:
            n_action = size_of(action_shape, "action_shape")
            options["sigma_type"] = sigma_type
            head_cls = ReparameterizationHead
            self.head = self._new_head(head_cls, n_action, head_hidden_size, **options)

    def forward(self, x: Any, **head_options: Any) -> dict[str, Any]:
        output = super().forward(x, **head_options)
        return output if self.action_space == "discrete" else {"logit": output}


class PPG(nn.Module):
    """Policy with an auxiliary value head, and a value network apart from it.

    https://arxiv.org/abs/2009.04416. `compute_actor` and `compute_actor_critic` are the policy
    network's; `compute_critic` is the value network.
    """

    options_of = VAC

    def __init__(
        self, obs_shape: ObsShape, action_shape: int | Sequence[int], **options: Any
    ) -> None:
        super().__init__()
        self.actor_critic = VAC(obs_shape, action_shape, **options)
        self.aux_encoder = deepcopy(self.actor_critic.critic_encoder)
        self.aux_head = deepcopy(self.actor_critic.critic_head)
        self.wraps_obs = self.actor_critic.wraps_obs
        self.action_space = self.actor_critic.action_space

    def forward(self, x: Any, mode: str = "compute_actor") -> dict[str, Any]:
        if mode != "compute_critic":
            return self.actor_critic(x, mode)
        obs, _ = split_mask(x, self.wraps_obs)
        return {"value": self.aux_head(self.aux_encoder(obs))["pred"]}


class ACER(DiscreteQAC):
    """{'logit': (B, A)} and {'q_value': (B, A)}, an encoder each, https://arxiv.org/abs/1611.01224."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__(
            obs_shape,
            action_shape,
            actor_head_hidden_size=actor_head_hidden_size,
            actor_head_layer_num=actor_head_layer_num,
            critic_head_hidden_size=critic_head_hidden_size,
            critic_head_layer_num=critic_head_layer_num,
            encoder_hidden_size_list=encoder_hidden_size_list,
            activation=activation,
            norm_type=norm_type,
        )
