"""Q networks of distributional and branching algorithms.

Each takes an observation, or {'obs', 'action_mask'}, and gives the dict of its head; when
`action_shape` lists several actions every entry is a list, one per action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ding.model.dqn import DQN, QNetwork
from ding.model.encoder import ObsShape, size_of
from ding.model.head import MultiHead
from ding.model.value_head import (
    BranchingHead,
    DistributionHead,
    FQFHead,
    QRDQNHead,
    QuantileHead,
    RainbowHead,
)
from ding.torch_utils.network import Activation
from ding.utils.errors import ConfigError


class C51DQN(QNetwork):
    """{'logit': (B, A), 'distribution': (B, A, K)}, https://arxiv.org/abs/1707.06887."""

    head_cls: type[nn.Module] = DistributionHead

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        activation: Activation = "relu",
        norm_type: str | None = None,
        v_min: float = -10.0,
        v_max: float = 10.0,
        n_atom: int = 51,
        noise: bool | None = None,
    ) -> None:
        """`noise` None leaves it to the head."""
        noisy: dict[str, Any] = {} if noise is None else {"noise": noise}
        super().__init__(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = self._new_head(
            self.head_cls,
            action_shape,
            head_hidden_size,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
            v_min=v_min,
            v_max=v_max,
            n_atom=n_atom,
            **noisy,
        )


class RainbowDQN(C51DQN):
    """C51 with dueling heads, noisy by default, https://arxiv.org/abs/1710.02298."""

    head_cls = RainbowHead


class QRDQN(QNetwork):
    """{'logit': (B, A), 'q': (B, A, N), 'tau': (B, N, 1)}, https://arxiv.org/abs/1710.10044."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        num_quantiles: int = 32,
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = self._new_head(
            QRDQNHead,
            action_shape,
            head_hidden_size,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
            num_quantiles=num_quantiles,
        )


class IQN(QNetwork):
    """{'logit': (B, A), 'q': (N, B, A), 'quantiles': (N * B, 1)}, https://arxiv.org/abs/1806.06923."""

    head_cls: type[nn.Module] = QuantileHead

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        action_shape: int | Sequence[int],
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        head_hidden_size: int | None = None,
        head_layer_num: int = 1,
        num_quantiles: int = 32,
        quantile_embedding_size: int = 128,
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = self._new_head(
            self.head_cls,
            action_shape,
            head_hidden_size,
            layer_num=head_layer_num,
            activation=activation,
            norm_type=norm_type,
            num_quantiles=num_quantiles,
            quantile_embedding_size=quantile_embedding_size,
        )


class FQF(IQN):
    """The dict of `FQFHead`, https://arxiv.org/abs/1911.02140."""

    head_cls = FQFHead


class BDQ(QNetwork):
    """{'logit': (B, D, A)}: D actions with A bins each, https://arxiv.org/abs/1711.08946."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        obs_shape: ObsShape,
        num_branches: int | Sequence[int],
        action_bins_per_branch: int = 2,
        layer_num: int = 3,
        a_layer_num: int | None = None,
        v_layer_num: int | None = None,
        encoder_hidden_size_list: Sequence[int] = (128, 128, 64),
        head_hidden_size: int | None = None,
        norm_type: str | None = None,
        activation: Activation = "relu",
    ) -> None:
        super().__init__(obs_shape, encoder_hidden_size_list, activation, norm_type)
        self.head = BranchingHead(
            head_hidden_size or self.encoder.output_size,
            size_of(num_branches, "num_branches"),
            action_bins_per_branch,
            layer_num,
            a_layer_num,
            v_layer_num,
            activation=activation,
            norm_type=norm_type,
            in_size=self.encoder.output_size,
        )


class SQNModel(nn.Module):
    """Two Q networks: {'q_value': [(B, A), (B, A)], 'logit': (B, A)}, the smaller as `logit`."""

    options_of = DQN

    def __init__(
        self, obs_shape: ObsShape, action_shape: int | Sequence[int], **options: Any
    ) -> None:
        super().__init__()
        self.q0 = DQN(obs_shape, action_shape, **options)
        self.q1 = DQN(obs_shape, action_shape, **options)
        self.wraps_obs = self.q0.wraps_obs
        if isinstance(self.q0.head, MultiHead):
            raise ConfigError("SQN has one discrete action; action_shape must be one number")

    def forward(self, x: Any) -> dict[str, Any]:
        output = self.q0(x)
        q_value = [output["logit"], self.q1(x)["logit"]]
        return {**output, "q_value": q_value, "logit": torch.minimum(*q_value)}
