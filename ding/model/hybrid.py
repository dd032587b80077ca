"""Networks for hybrid actions: a discrete type together with continuous arguments.

`action_shape` is {'action_type_shape', 'action_args_shape'}; actions are {'action_type': (B,),
'action_args': (B, M)}. Letters in shapes: B batch, K types, M arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.model.action_mask import split_mask, wraps_obs
from ding.model.actor_critic import (
    ActionValueNetwork,
    ActorCritic,
    critic_of,
    encoded,
    encoder_pair,
    encoders_of,
    run_mode,
)
from ding.model.encoder import ObsShape, encoder_for, shape_of, size_of
from ding.model.head import (
    DiscreteHead,
    RegressionHead,
    ReparameterizationHead,
    discrete_head_for,
)
from ding.torch_utils.blocks import one_hot
from ding.torch_utils.network import Activation
from ding.utils.errors import ConfigError


def hybrid_sizes(action_shape: Any) -> tuple[int, int]:
    """Number of types and of arguments."""
    keys = ("action_type_shape", "action_args_shape")
    if not isinstance(action_shape, Mapping) or set(action_shape) != set(keys):
        raise ConfigError(
            f"a hybrid action_shape is a dict of {' and '.join(keys)}, got {action_shape!r}"
        )
    types = shape_of(action_shape[keys[0]], keys[0])
    if len(types) != 1:
        raise ConfigError(f"action_type_shape must be one number, got {action_shape[keys[0]]!r}")
    return types[0], size_of(action_shape[keys[1]], keys[1])


class HybridVAC(ActorCritic):
    """VAC with 'logit' of {'action_type': (B, K), 'action_args': {'mu', 'sigma'}}."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: Mapping[str, Any],
        action_space: str = "hybrid",
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
    ) -> None:
        super().__init__(obs_shape)
        n_type, n_arg = hybrid_sizes(action_shape)
        self.action_space, self.share_encoder = action_space, share_encoder
        self.actor_encoder, self.critic_encoder = encoder_pair(
            obs_shape, encoder_hidden_size_list, share_encoder, activation, norm_type
        )
        options: dict[str, Any] = {
            "activation": activation,
            "norm_type": norm_type,
            "in_size": self.actor_encoder.output_size,
        }
        self.type_head = DiscreteHead(
            actor_head_hidden_size, n_type, actor_head_layer_num, **options
        )
        self.args_head = ReparameterizationHead(
            actor_head_hidden_size,
            n_arg,
            actor_head_layer_num,
            sigma_type,
            fixed_sigma_value,
            bound_type=bound_type,
            **options,
        )
        self.critic_head = RegressionHead(
            critic_head_hidden_size, 1, critic_head_layer_num, **options
        )

    def _policy(self, features: Tensor) -> dict[str, Any]:
        logit = self.type_head(features)["logit"]
        return {"logit": {"action_type": logit, "action_args": self.args_head(features)}}


class HybridQAC(ActionValueNetwork):
    """Actor {'logit': (B, K), 'action_args': (B, M)} and critic {'q_value'} as in PADDPG.

    The critic sees the arguments and the probabilities of the types, or without 'logit' in its
    input the type that was taken.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: Mapping[str, Any],
        action_space: str = "hybrid",
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
        self.action_space, self.twin_critic = action_space, twin_critic
        self.n_type, n_arg = hybrid_sizes(action_shape)
        self.actor_encoder, self.critic_encoder, size = encoders_of(
            obs_shape, encoder_hidden_size_list, share_encoder, activation, norm_type
        )
        n_hidden = 0 if self.actor_encoder is not None else 1
        options: dict[str, Any] = {
            "layer_num": actor_head_layer_num + n_hidden,
            "activation": activation,
            "norm_type": norm_type,
            "in_size": size,
        }
        self.type_head = DiscreteHead(actor_head_hidden_size, self.n_type, **options)
        self.args_head = RegressionHead(
            actor_head_hidden_size, n_arg, final_tanh=True, squeeze=False, **options
        )
        hidden = [critic_head_hidden_size] * (critic_head_layer_num + n_hidden)
        sizes = [size + self.n_type + n_arg, *hidden, 1]
        self.critic_head = critic_of(sizes, twin_critic, activation, norm_type)

    def compute_actor(self, x: Any) -> dict[str, Any]:
        obs, mask = split_mask(x, self.wraps_obs)
        features = encoded(self.actor_encoder, obs)
        output = self.type_head(features)
        return {**output, "action_args": self.args_head(features)["pred"], **mask}

    def _q_values(self, x: Mapping[str, Any]) -> Tensor:
        """{'obs', 'action', 'logit'} -> (B,) or (2, B)."""
        action = x["action"]
        if "logit" in x:
            types = x["logit"].softmax(dim=-1)
        else:
            types = one_hot(action["action_type"], self.n_type)
        obs, _ = split_mask(x["obs"], self.wraps_obs)
        features = encoded(self.critic_encoder, obs)
        parts = [features, action["action_args"], types]
        return self.critic_head(torch.cat(parts, dim=-1)).squeeze(-1)


class PDQN(nn.Module):
    """Arguments from a network of their own, then Q-values of the types given them.

    https://arxiv.org/abs/1810.06394. With `multi_pass` each type is valued with its own arguments
    only, https://arxiv.org/abs/1905.04388; `action_mask` (K, M) says which those are.
    """

    modes = ("compute_continuous", "compute_discrete")

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: Mapping[str, Any],
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        dueling: bool = True,
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        multi_pass: bool = False,
        action_mask: Sequence[Sequence[int]] | None = None,
    ) -> None:
        super().__init__()
        self.wraps_obs = wraps_obs(obs_shape)
        n_type, n_arg = hybrid_sizes(action_shape)
        if multi_pass != (action_mask is not None):
            raise ConfigError("multi_pass and action_mask belong together: set both or none")
        self.multi_pass = multi_pass
        self.args_mask: Tensor | None
        mask = None if action_mask is None else torch.tensor(action_mask, dtype=torch.float32)
        if mask is not None and mask.shape != (n_type, n_arg):
            raise ConfigError(f"action_mask must be {(n_type, n_arg)}, is {tuple(mask.shape)}")
        self.register_buffer("args_mask", mask, persistent=False)

        def encoder() -> Any:
            return encoder_for(obs_shape, encoder_hidden_size_list, activation, norm_type)

        self.args_encoder, self.encoder = encoder(), encoder()
        size = self.encoder.output_size
        options: dict[str, Any] = {
            "layer_num": head_layer_num,
            "activation": activation,
            "norm_type": norm_type,
        }
        self.args_head = RegressionHead(
            head_hidden_size or size, n_arg, final_tanh=True, squeeze=False, in_size=size, **options
        )
        self.head: nn.Module = discrete_head_for(
            (n_type,), head_hidden_size or size, dueling, in_size=size + n_arg, **options
        )

    def forward(self, x: Any, mode: str = "compute_continuous") -> dict[str, Any]:
        return run_mode(self, mode, x)

    def continuous_parameters(self) -> list[nn.Parameter]:
        """Parameters that `compute_continuous` trains."""
        return [*self.args_encoder.parameters(), *self.args_head.parameters()]

    def compute_continuous(self, x: Any) -> dict[str, Any]:
        """obs -> {'action_args': (B, M)}."""
        obs, _ = split_mask(x, self.wraps_obs)
        return {"action_args": self.args_head(self.args_encoder(obs))["pred"]}

    def compute_discrete(self, x: Mapping[str, Any]) -> dict[str, Any]:
        """{'state' or 'obs', 'action_args'} -> {'logit': (B, K), 'action_args': (B, M)}."""
        state, args = x["state"] if "state" in x else x["obs"], x["action_args"]
        obs, action_mask = split_mask(state, self.wraps_obs)
        features = self.encoder(obs)
        if self.args_mask is None:
            logit = self.head(torch.cat([features, args], dim=-1))["logit"]
        else:
            logit = self._each_alone(features, args, self.args_mask)
        return {"logit": logit, "action_args": args, **action_mask}

    def _each_alone(self, features: Tensor, args: Tensor, mask: Tensor) -> Tensor:
        """Type k valued with the arguments of k, the others zero: one pass over (B, K, ...)."""
        own = args.unsqueeze(-2) * mask
        repeated = features.unsqueeze(-2).expand(*own.shape[:-1], -1)
        q = self.head(torch.cat([repeated, own], dim=-1))["logit"]
        return q.diagonal(dim1=-2, dim2=-1)
