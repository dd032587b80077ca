"""Actor-critic for continuous actions whose critic is a distribution of returns (D4PG)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ding.model.actor_critic import QAC
from ding.model.encoder import ObsShape, size_of
from ding.model.value_head import DistributionHead
from ding.torch_utils.network import Activation
from ding.utils.errors import ConfigError


class QACDIST(QAC):
    """As QAC; `compute_critic` gives {'q_value': (B, 1), 'distribution': (B, 1, K)}.

    https://arxiv.org/abs/1804.08617
    """

    modes = ("compute_actor", "compute_critic", "compute_first_critic")

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        action_space: str = "regression",
        critic_head_type: str = "categorical",
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        encoder_hidden_size_list: Sequence[int] | None = None,
        share_encoder: bool = False,
        activation: Activation = "relu",
        norm_type: str | None = None,
        v_min: float = -10.0,
        v_max: float = 10.0,
        n_atom: int = 51,
    ) -> None:
        if critic_head_type != "categorical":
            raise ConfigError(f"critic_head_type must be 'categorical', got '{critic_head_type}'")
        super().__init__(
            obs_shape,
            action_shape,
            action_space,
            actor_head_hidden_size=actor_head_hidden_size,
            actor_head_layer_num=actor_head_layer_num,
            encoder_hidden_size_list=encoder_hidden_size_list,
            share_encoder=share_encoder,
            activation=activation,
            norm_type=norm_type,
        )
        bare = self.critic_encoder is None
        size = size_of(obs_shape, "obs_shape") if bare else self.critic_encoder.output_size  # type: ignore[union-attr]
        self.critic_head = DistributionHead(
            critic_head_hidden_size,
            1,
            critic_head_layer_num + int(bare),
            n_atom,
            v_min,
            v_max,
            activation,
            norm_type,
            in_size=size + size_of(action_shape, "action_shape"),
        )

    def compute_critic(self, x: Mapping[str, Any]) -> dict[str, Any]:
        output = self.critic_head(self._obs_action(x))
        return {"q_value": output.pop("logit"), **output}

    def compute_first_critic(self, x: Mapping[str, Any]) -> dict[str, Any]:
        return {"q_value": self.compute_critic(x)["q_value"].squeeze(-1)}
