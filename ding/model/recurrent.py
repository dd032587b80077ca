"""Networks with a memory: recurrent Q networks, recurrent actor-critic, gated transformer.

Inputs are {'obs', 'prev_state'}: sequences (T, B, ...), or with `inference` one step (B, ...).
`prev_state` is in any form of `ding.torch_utils.recurrent`; `reset` (T, B) may say where an episode
begins inside a sequence. Letters in shapes: T time, B batch, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ding.model.action_mask import split_mask, wraps_obs
from ding.model.actor_critic import VAC
from ding.model.encoder import Encoder, ObsShape, encoder_for, shape_of
from ding.model.head import discrete_head_for
from ding.torch_utils.blocks import one_hot
from ding.torch_utils.gtrxl import GTrXL
from ding.torch_utils.network import Activation
from ding.torch_utils.recurrent import Recurrent, get_lstm, split_state
from ding.utils.batch import tree_map


def unrolled(
    rnn: Recurrent, x: Tensor, inputs: Mapping[str, Any], saved_state_timesteps: Sequence[int]
) -> tuple[Tensor, Any, list[Any]]:
    """Outputs (T, B, H), the state after the last step, and the states after the given steps.

    `saved_state_timesteps` counts from 1; the sequence is cut there, nothing is computed twice.
    """
    state: Any = inputs.get("prev_state")
    reset = inputs.get("reset")
    cuts = sorted({0, *saved_state_timesteps, len(x)})
    outputs, saved = [], {}
    for begin, end in pairwise(cuts):
        part = None if reset is None else reset[begin:end]
        output, state = rnn(x[begin:end], state, list_next_state=False, reset=part)
        outputs.append(output)
        saved[end] = state
    joined = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
    return joined, split_state(state), [split_state(saved[t]) for t in saved_state_timesteps]


class DRQN(nn.Module):
    """{'logit': (T, B, A) or (B, A), 'next_state': B states}, https://arxiv.org/abs/1507.06527."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        dueling: bool = True,
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        lstm_type: str = "normal",
        activation: Activation = "relu",
        norm_type: str | None = None,
        res_link: bool = False,
    ) -> None:
        super().__init__()
        self.encoder: Encoder = encoder_for(
            obs_shape, encoder_hidden_size_list, activation, norm_type
        )
        size = self.encoder.output_size
        self.rnn = get_lstm(lstm_type, size + self._extra_size(action_shape), size)
        self.res_link = res_link
        self.head = discrete_head_for(
            shape_of(action_shape, "action_shape"),
            head_hidden_size or size,
            dueling,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
            in_size=size,
        )

    def _extra_size(self, action_shape: int | Sequence[int]) -> int:
        """Number of inputs of the recurrent layer besides the features."""
        return 0

    def _extra(self, inputs: Mapping[str, Any]) -> Tensor | None:
        return None

    def forward(
        self,
        inputs: Mapping[str, Any],
        inference: bool = False,
        saved_state_timesteps: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """With `saved_state_timesteps` also 'saved_state', the states after those steps."""
        if inference:
            inputs = {k: v if k == "prev_state" else _one_step(v) for k, v in inputs.items()}
        features = self.encoder(inputs["obs"])
        extra = self._extra(inputs)
        x = features if extra is None else torch.cat([features, extra], dim=-1)
        x, state, saved = unrolled(self.rnn, x, inputs, saved_state_timesteps or ())
        output = dict(self.head(x + features if self.res_link else x))
        if "action_mask" in inputs:
            output["action_mask"] = inputs["action_mask"]
        if inference:
            output = tree_map(lambda leaf: leaf[0], output)
        output["next_state"] = state
        if saved_state_timesteps is not None:
            output["saved_state"] = saved
        return output


def _one_step(tree: Any) -> Any:
    return tree_map(lambda leaf: leaf.unsqueeze(0), tree)


class NGU(DRQN):
    """DRQN that also sees the last action and reward and which exploration rate it is to follow.

    https://arxiv.org/abs/2002.06038. `inputs` has 'prev_action' and 'prev_reward_extrinsic' (or
    'action' and 'reward' of the same steps, which are moved on by one) and 'beta', an index below
    `collector_env_num`.
    """

    options_of = DRQN

    def __init__(
        self,
        obs_shape: ObsShape,
        action_shape: int,
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        collector_env_num: int = 1,
        **options: Any,
    ) -> None:
        self._n_beta = collector_env_num
        self._n_action = shape_of(action_shape, "action_shape")[0]
        super().__init__(obs_shape, action_shape, encoder_hidden_size_list, **options)

    def _extra_size(self, action_shape: int | Sequence[int]) -> int:
        return self._n_action + 1 + self._n_beta

    def _extra(self, inputs: Mapping[str, Any]) -> Tensor:
        if "prev_action" in inputs:
            action, reward = inputs["prev_action"], inputs["prev_reward_extrinsic"]
        else:
            action, reward = _delayed(inputs["action"]), _delayed(inputs["reward"])
        if reward.ndim == action.ndim:
            reward = reward.unsqueeze(-1)
        # -1 is what stands for "no action yet".
        acted = one_hot(action.clamp_min(0), self._n_action) * (action >= 0).unsqueeze(-1)
        return torch.cat([acted, reward.float(), one_hot(inputs["beta"], self._n_beta)], dim=-1)


def _delayed(x: Tensor) -> Tensor:
    """Values of one step before; nothing (-1 for actions, 0 for rewards) at the first."""
    nothing = 0 if x.is_floating_point() else -1
    return torch.cat([torch.full_like(x[:1], nothing), x[:-1]])


class RecurrentVAC(nn.Module):
    """VAC behind an encoder and a recurrent layer, for all modes of VAC.

    Outputs are those of VAC for each step, and 'next_state'.
    """

    options_of = VAC

    def __init__(
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        action_space: str = "discrete",
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        lstm_type: str = "normal",
        activation: Activation = "relu",
        **head_options: Any,
    ) -> None:
        super().__init__()
        self.encoder: Encoder = encoder_for(obs_shape, encoder_hidden_size_list, activation)
        size = self.encoder.output_size
        self.rnn = get_lstm(lstm_type, size, size)
        self.actor_critic = VAC(
            size,
            action_shape,
            action_space,
            encoder_hidden_size_list=[size],
            activation=activation,
            **head_options,
        )

    def forward(
        self, inputs: Mapping[str, Any], mode: str = "compute_actor", inference: bool = False
    ) -> dict[str, Any]:
        if inference:
            inputs = {k: v if k == "prev_state" else _one_step(v) for k, v in inputs.items()}
        x, state, _ = unrolled(self.rnn, self.encoder(inputs["obs"]), inputs, ())
        masks = {key: inputs[key] for key in ("action_mask",) if key in inputs}
        output = self.actor_critic({"obs": x, **masks}, mode)
        if inference:
            output = tree_map(lambda leaf: leaf[0], output)
        return {**output, "next_state": state}


class GTrXLDQN(nn.Module):
    """(T, B, *obs) -> {'logit': (T, B, A), 'memory', 'transformer_out': (T, B, hidden_size)}.

    https://arxiv.org/abs/1910.06764. The memory goes on from call to call until `reset_memory`.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        head_layer_num: int = 1,
        att_head_dim: int = 16,
        hidden_size: int = 16,
        att_head_num: int = 2,
        att_mlp_num: int = 2,
        att_layer_num: int = 3,
        memory_len: int = 64,
        activation: Activation = "relu",
        head_norm_type: str | None = None,
        dropout: float = 0.0,
        gru_gating: bool = True,
        gru_bias: float = 2.0,
        dueling: bool = True,
        encoder_hidden_size_list: Sequence[int] = (128, 128, 256),
        encoder_norm_type: str | None = None,
    ) -> None:
        super().__init__()
        self.wraps_obs = wraps_obs(obs_shape)
        self.encoder: Encoder = encoder_for(
            obs_shape, encoder_hidden_size_list, activation, encoder_norm_type
        )
        self.core = GTrXL(
            *(self.encoder.output_size, att_head_dim, hidden_size, att_head_num, att_mlp_num),
            att_layer_num,
            memory_len,
            dropout,
            activation,
            gru_gating,
            gru_bias,
        )
        self.head = discrete_head_for(
            shape_of(action_shape, "action_shape"),
            hidden_size,
            dueling,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=head_norm_type,
        )

    def forward(self, x: Any) -> dict[str, Any]:
        obs, mask = split_mask(x, self.wraps_obs)
        output = self.core(self.encoder(obs))
        return {
            **self.head(output["logit"]),
            **mask,
            "memory": output["memory"],
            "transformer_out": output["logit"],
        }

    def reset_memory(self, batch_size: int | None = None, state: Tensor | None = None) -> None:
        self.core.reset_memory(batch_size, state)

    def get_memory(self) -> Tensor | None:
        return self.core.get_memory()
