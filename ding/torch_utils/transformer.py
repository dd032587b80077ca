"""Attention over entities, https://arxiv.org/abs/1706.03762.

Letters in shapes: B batch, N entities, C features, H heads, D size of a head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ding.torch_utils.blocks import MLP, fc_block
from ding.torch_utils.network import Activation


class ScaledDotProductAttention(nn.Module):
    """`d_k` is the size of a head, by whose square root scores are divided."""

    def __init__(self, d_k: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.d_k = d_k
        self.dropout = nn.Dropout(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, H, N, D) each -> (B, H, N, D); `mask` is false for keys that no one may look at."""
        score = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            # The lowest finite number: a row without any key gives a mean, not NaN.
            score = score.masked_fill(~mask, torch.finfo(score.dtype).min)
        return self.dropout(score.softmax(dim=-1)) @ v


class Attention(nn.Module):
    """(B, N, C) -> (B, N, `output_dim`) through `head_num` heads of `head_dim`."""

    def __init__(
        self, input_dim: int, head_dim: int, output_dim: int, head_num: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.head_num = head_num
        self.pre = nn.Linear(input_dim, head_dim * head_num * 3)
        self.project = nn.Linear(head_dim * head_num, output_dim)
        self.attention = ScaledDotProductAttention(head_dim, dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """`mask` (B, N) says which entities are there."""
        heads = self.pre(x).unflatten(-1, (3, self.head_num, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        keys = None if mask is None else mask.bool()[:, None, None, :]
        return self.project(self.attention(q, k, v, keys).transpose(1, 2).flatten(2))


class TransformerLayer(nn.Module):
    """Attention, then a perceptron, each added to its input and normalised."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        input_dim: int,
        head_dim: int,
        hidden_dim: int,
        output_dim: int,
        head_num: int,
        mlp_num: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.attention = Attention(input_dim, head_dim, output_dim, head_num, dropout)
        self.mlp = MLP(output_dim, hidden_dim, output_dim, mlp_num, activation=activation)
        self.norms = nn.ModuleList(nn.LayerNorm(output_dim) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norms[0](x + self.dropout(self.attention(x, mask)))
        return self.norms[1](x + self.dropout(self.mlp(x)))


class Transformer(nn.Module):
    """(B, N, C) -> (B, N, `output_dim`): an embedding, then `layer_num` layers."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        input_dim: int,
        head_dim: int = 128,
        hidden_dim: int = 1024,
        output_dim: int = 256,
        head_num: int = 2,
        mlp_num: int = 2,
        layer_num: int = 3,
        dropout_ratio: float = 0.0,
        activation: Activation = "relu",
    ) -> None:
        super().__init__()
        self.embedding = fc_block(input_dim, output_dim, activation)
        self.dropout = nn.Dropout(dropout_ratio)
        self.layers = nn.ModuleList(
            TransformerLayer(
                *(output_dim, head_dim, hidden_dim, output_dim, head_num, mlp_num),
                dropout=dropout_ratio,
                activation=activation,
            )
            for _ in range(layer_num)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.dropout(self.embedding(x))
        for layer in self.layers:
            x = layer(x, mask)
        return x
