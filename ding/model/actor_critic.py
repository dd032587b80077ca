"""Actor-critic networks: VAC with state values, QAC and DiscreteQAC with action values.

Every model is called with a `mode`: compute_actor, compute_critic or compute_actor_critic.
Letters in shapes: B batch, A actions (or dimensions of the action).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.model.action_mask import split_mask, wraps_obs
from ding.model.encoder import (
    IMAGE_SIZES,
    Encoder,
    ObsShape,
    as_float,
    encoder_for,
    holds_image,
    shape_of,
    size_of,
)
from ding.model.head import RegressionHead, ReparameterizationHead, discrete_head_for
from ding.torch_utils.network import Activation, TwinMLP, mlp, orthogonal_
from ding.utils.errors import ConfigError, nearest


def run_mode(model: nn.Module, mode: str, x: Any) -> dict[str, Any]:
    """`model.<mode>(x)`, if that is one of its modes."""
    modes: tuple[str, ...] = model.modes  # type: ignore[assignment]
    if mode not in modes:
        name = type(model).__name__
        raise ValueError(f"{name} has no mode '{mode}'{nearest(mode, modes)}")
    return getattr(model, mode)(x)


class ActorCritic(nn.Module):
    """Policy and state value; the encoder is shared or one for each."""

    modes = ("compute_actor", "compute_critic", "compute_actor_critic")
    share_encoder: bool
    actor_encoder: Encoder
    critic_encoder: Encoder
    critic_head: RegressionHead

    def __init__(self, obs_shape: ObsShape) -> None:
        super().__init__()
        self.wraps_obs = wraps_obs(obs_shape)

    def forward(self, x: Any, mode: str = "compute_actor") -> dict[str, Any]:
        return run_mode(self, mode, x)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        obs, mask = split_mask(x, self.wraps_obs)
        return {**self._policy(self.actor_encoder(obs)), **mask}

    def compute_critic(self, x: Any) -> dict[str, Any]:
        obs, _ = split_mask(x, self.wraps_obs)
        return {"value": self._value(self.critic_encoder(obs))}

    def compute_actor_critic(self, x: Any) -> dict[str, Any]:
        obs, mask = split_mask(x, self.wraps_obs)
        features = self.actor_encoder(obs)
        output = self._policy(features)
        shared = self.share_encoder
        output["value"] = self._value(features if shared else self.critic_encoder(obs))
        return {**output, **mask}

    @abstractmethod
    def _policy(self, features: Tensor) -> dict[str, Any]: ...

    def _value(self, features: Tensor) -> Tensor:
        return self.critic_head(features)["pred"]


class VAC(ActorCritic):
    """One kind of action: 'logit' (B, A), or {'mu', 'sigma'} of a continuous one."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        action_space: str = "discrete",
        share_encoder: bool = True,
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        sigma_type: str = "independent",
        fixed_sigma_value: float = 0.3,
        bound_type: str | None = None,
        orthogonal_init: bool = False,
    ) -> None:
        super().__init__(obs_shape)
        _check_action_space(action_space, ("discrete", "continuous"))
        self.action_space = action_space
        self.share_encoder = share_encoder
        self.actor_encoder, self.critic_encoder = encoder_pair(
            obs_shape, encoder_hidden_size_list, share_encoder, activation, norm_type
        )
        shared: dict[str, Any] = {
            "activation": activation,
            "norm_type": norm_type,
            "in_size": self.actor_encoder.output_size,
        }
        self.actor_head: nn.Module
        if action_space == "discrete":
            self.actor_head = discrete_head_for(
                shape_of(action_shape, "action_shape"),
                actor_head_hidden_size,
                layer_num=actor_head_layer_num,
                **shared,
            )
        else:
            self.actor_head = ReparameterizationHead(
                actor_head_hidden_size,
                size_of(action_shape, "action_shape"),
                actor_head_layer_num,
                sigma_type,
                fixed_sigma_value,
                bound_type=bound_type,
                **shared,
            )
        self.critic_head = RegressionHead(
            critic_head_hidden_size, 1, critic_head_layer_num, **shared
        )
        if orthogonal_init:
            self._init_orthogonal()

    def _init_orthogonal(self) -> None:
        """Gains sqrt(2) inside, 0.01 for the policy's output and 1 for the value's."""
        orthogonal_(self, math.sqrt(2.0))
        orthogonal_(self.critic_head.main[-1], 1.0)
        if isinstance(self.actor_head, ReparameterizationHead):
            orthogonal_(self.actor_head.mu, 0.01)
            return
        for layer in self.actor_head.modules():
            if isinstance(layer, nn.Sequential):
                orthogonal_(layer[-1], 0.01)

    def _policy(self, features: Tensor) -> dict[str, Any]:
        output = self.actor_head(features)
        return output if self.action_space == "discrete" else {"logit": output}


class ActionValueNetwork(nn.Module):
    """Policy and the values of actions, by one critic or by two."""

    modes: tuple[str, ...] = ("compute_actor", "compute_critic", "compute_critics")
    twin_critic: bool

    def __init__(self, obs_shape: ObsShape) -> None:
        super().__init__()
        self.wraps_obs = wraps_obs(obs_shape)

    def forward(self, x: Any, mode: str = "compute_actor") -> dict[str, Any]:
        return run_mode(self, mode, x)

    def compute_critic(self, x: Any) -> dict[str, Any]:
        """{'q_value': values}, with two critics {'q_value': [values, values]}."""
        q = self._q_values(x)
        return {"q_value": list(q.unbind(0)) if self.twin_critic else q}

    def compute_critics(self, x: Any) -> dict[str, Any]:
        """The same as one tensor, critics first, however many there are."""
        q = self._q_values(x)
        return {"q_value": q if self.twin_critic else q.unsqueeze(0)}

    @abstractmethod
    def _q_values(self, x: Any) -> Tensor:
        """Values of one critic; of two, one above the other."""


class QAC(ActionValueNetwork):
    """Policy and action values for continuous actions; twin critics are evaluated as one stack.

    Without `encoder_hidden_size_list` a vector observation goes through `1 + head_layer_num` hidden
    layers of `head_hidden_size`; images and dicts get an encoder of the usual sizes first.
    """

    modes: tuple[str, ...] = (*ActionValueNetwork.modes, "compute_first_critic")

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        action_space: str = "regression",
        twin_critic: bool = False,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        encoder_hidden_size_list: Sequence[int] | None = None,
        share_encoder: bool = False,
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__(obs_shape)
        _check_action_space(action_space, ("regression", "reparameterization"))
        self.action_space = action_space
        self.twin_critic = twin_critic
        n_action = size_of(action_shape, "action_shape")
        self.actor_encoder, self.critic_encoder, size = encoders_of(
            obs_shape, encoder_hidden_size_list, share_encoder, activation, norm_type
        )
        n_hidden = 0 if self.actor_encoder is not None else 1
        head: dict[str, Any] = {
            "layer_num": actor_head_layer_num + n_hidden,
            "activation": activation,
            "norm_type": norm_type,
            "in_size": size,
        }
        self.actor_head: nn.Module
        if action_space == "regression":
            self.actor_head = RegressionHead(
                actor_head_hidden_size, n_action, final_tanh=True, squeeze=False, **head
            )
        else:
            self.actor_head = ReparameterizationHead(
                actor_head_hidden_size, n_action, sigma_type="conditioned", **head
            )
        hidden = [critic_head_hidden_size] * (critic_head_layer_num + n_hidden)
        self.critic_head = critic_of(
            [size + n_action, *hidden, 1], twin_critic, activation, norm_type
        )

    def compute_actor(self, x: Any) -> dict[str, Any]:
        obs, _ = split_mask(x, self.wraps_obs)
        output = self.actor_head(encoded(self.actor_encoder, obs))
        return (
            {"action": output["pred"]} if self.action_space == "regression" else {"logit": output}
        )

    def _q_values(self, x: Mapping[str, Any]) -> Tensor:
        """{'obs', 'action'} -> (B,) or (2, B)."""
        return self.critic_head(self._obs_action(x)).squeeze(-1)

    def compute_first_critic(self, x: Mapping[str, Any]) -> dict[str, Any]:
        """{'obs', 'action'} -> {'q_value': (B,)}; a second critic is not asked."""
        head = self.critic_head.first if isinstance(self.critic_head, TwinMLP) else self.critic_head
        return {"q_value": head(self._obs_action(x)).squeeze(-1)}

    def _obs_action(self, x: Mapping[str, Any]) -> Tensor:
        action = x["action"]
        if action.ndim == 1:
            action = action.unsqueeze(1)
        return torch.cat([encoded(self.critic_encoder, x["obs"]), action], dim=-1)


class DiscreteQAC(ActionValueNetwork):
    """Policy and action values for one discrete action, as discrete SAC needs them."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        twin_critic: bool = False,
        actor_head_hidden_size: int = 64,
        actor_head_layer_num: int = 1,
        critic_head_hidden_size: int = 64,
        critic_head_layer_num: int = 1,
        encoder_hidden_size_list: Sequence[int] | None = None,
        share_encoder: bool = False,
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__(obs_shape)
        self.twin_critic = twin_critic
        n_action = shape_of(action_shape, "action_shape")
        if len(n_action) != 1:
            raise ConfigError(f"DiscreteQAC needs the number of actions, got {action_shape!r}")
        self.actor_encoder, self.critic_encoder, size = encoders_of(
            obs_shape, encoder_hidden_size_list, share_encoder, activation, norm_type
        )
        n_hidden = 0 if self.actor_encoder is not None else 1
        self.actor_head = discrete_head_for(
            n_action,
            actor_head_hidden_size,
            layer_num=actor_head_layer_num + n_hidden,
            activation=activation,
            norm_type=norm_type,
            in_size=size,
        )
        hidden = [critic_head_hidden_size] * (critic_head_layer_num + n_hidden)
        self.critic_head = critic_of([size, *hidden, *n_action], twin_critic, activation, norm_type)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        obs, mask = split_mask(x, self.wraps_obs)
        return {**self.actor_head(encoded(self.actor_encoder, obs)), **mask}

    def _q_values(self, x: Any) -> Tensor:
        """obs -> (B, A) or (2, B, A)."""
        obs, _ = split_mask(x, self.wraps_obs)
        return self.critic_head(encoded(self.critic_encoder, obs))


def _check_action_space(action_space: str, valid: tuple[str, ...]) -> None:
    if action_space not in valid:
        raise ConfigError(f"unknown action_space '{action_space}'{nearest(action_space, valid)}")


def encoders_of(
    obs_shape: ObsShape,
    hidden_size_list: Sequence[int] | None,
    share: bool,
    activation: Activation,
    norm_type: str | None,
) -> tuple[Encoder | None, Encoder | None, int]:
    """Encoders of actor and critic (None for a bare vector) and the number of features."""
    if hidden_size_list is None:
        if not isinstance(obs_shape, Mapping):
            shape = shape_of(obs_shape, "obs_shape")
            if len(shape) == 1:
                return None, None, shape[0]
        hidden_size_list = IMAGE_SIZES if holds_image(obs_shape) else IMAGE_SIZES[-1:] * 2
    actor, critic = encoder_pair(obs_shape, hidden_size_list, share, activation, norm_type)
    return actor, critic, actor.output_size


def encoder_pair(
    obs_shape: ObsShape,
    hidden_size_list: Sequence[int],
    share: bool,
    activation: Activation,
    norm_type: str | None,
) -> tuple[Encoder, Encoder]:
    """Encoders of actor and critic."""
    actor = encoder_for(obs_shape, hidden_size_list, activation, norm_type)
    critic = actor if share else encoder_for(obs_shape, hidden_size_list, activation, norm_type)
    return actor, critic


def encoded(encoder: Encoder | None, obs: Any) -> Tensor:
    if encoder is not None:
        return encoder(obs)
    return as_float(obs)


def critic_of(
    sizes: Sequence[int], twin: bool, activation: Activation, norm_type: str | None
) -> nn.Module:
    return TwinMLP(sizes, activation, norm_type) if twin else mlp(sizes, activation, norm_type)
