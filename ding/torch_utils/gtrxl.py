"""Gated transformer with a memory of earlier segments, https://arxiv.org/abs/1910.06764.

Relative positions follow https://arxiv.org/abs/1901.02860. Letters in shapes: T time, B batch,
C features, M steps in memory, S = M + T, H heads, D size of a head, L layers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ding.torch_utils.blocks import MLP, fc_block
from ding.torch_utils.network import Activation


class GRUGatingUnit(nn.Module):
    """A GRU cell in place of `x + y`; a large `bg` lets `x` pass at first."""

    def __init__(self, input_dim: int, bg: float = 2.0) -> None:
        super().__init__()
        self.of_x = nn.Linear(input_dim, 2 * input_dim, bias=False)
        self.of_y = nn.Linear(input_dim, 3 * input_dim, bias=False)
        self.of_reset_x = nn.Linear(input_dim, input_dim, bias=False)
        self.bg = nn.Parameter(torch.full((input_dim,), bg))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        reset_y, update_y, new_y = self.of_y(y).chunk(3, dim=-1)
        reset_x, update_x = self.of_x(x).chunk(2, dim=-1)
        reset = (reset_y + reset_x).sigmoid()
        update = (update_y + update_x - self.bg).sigmoid()
        new = (new_y + self.of_reset_x(reset * x)).tanh()
        return (1.0 - update) * x + update * new


class PositionalEmbedding(nn.Module):
    """Sines and cosines of positions: (S,) -> (S, C)."""

    def __init__(self, embedding_dim: int) -> None:
        super().__init__()
        half = torch.arange(0.0, embedding_dim, 2.0) / embedding_dim
        self.frequency: Tensor
        self.register_buffer("frequency", 10000.0**-half)
        self.embedding_dim = embedding_dim

    def forward(self, position: Tensor) -> Tensor:
        angle = torch.outer(position.to(self.frequency), self.frequency)
        return torch.cat([angle.sin(), angle.cos()], dim=-1)[:, : self.embedding_dim]


class AttentionXL(nn.Module):
    """Attention of T steps to themselves, to what was before them and to the memory."""

    def __init__(self, input_dim: int, head_dim: int, head_num: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.head_num, self.head_dim = head_num, head_dim
        size = head_num * head_dim
        self.query = nn.Linear(input_dim, size)
        self.key_value = nn.Linear(input_dim, 2 * size)
        self.position = nn.Linear(input_dim, size)
        self.project = nn.Linear(size, input_dim)
        # Global content and position biases, u and v of the paper.
        self.u = nn.Parameter(torch.zeros(head_num, 1, head_dim))
        self.v = nn.Parameter(torch.zeros(head_num, 1, head_dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, full: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        """`x` (T, B, C), `full` (S, B, C), `position` (S, C), `mask` (T, S) -> (T, B, C)."""
        query = self._heads(self.query(x))
        key, value = (self._heads(part) for part in self.key_value(full).chunk(2, dim=-1))
        place = self.position(position).unflatten(-1, (self.head_num, -1)).transpose(0, 1)
        content = (query + self.u) @ key.transpose(-2, -1)
        distance = _shifted((query + self.v) @ place.transpose(-2, -1))
        score = (content + distance) / math.sqrt(self.head_dim)
        score = score.masked_fill(~mask, torch.finfo(score.dtype).min)
        mixed = self.dropout(score.softmax(dim=-1)) @ value
        return self.project(mixed.permute(2, 0, 1, 3).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        """(S, B, H * D) -> (B, H, S, D)."""
        return x.unflatten(-1, (self.head_num, -1)).permute(1, 2, 0, 3)


def _shifted(score: Tensor) -> Tensor:
    """(B, H, T, S) by distance S - 1 ... 0 -> by key: row t moves T - 1 - t places to the left."""
    n_query, n_key = score.shape[-2:]
    padded = nn.functional.pad(score, (1, 0)).reshape(*score.shape[:2], n_key + 1, n_query)
    return padded[:, :, 1:].reshape(score.shape)


def allowed(n_query: int, n_key: int, device: torch.device) -> Tensor:
    """(T, S): a step sees the memory, itself and the steps before it."""
    ones = torch.ones(n_query, n_key, dtype=torch.bool, device=device)
    return ones.tril(n_key - n_query)


class GatedTransformerXLLayer(nn.Module):
    """Norms go before attention and perceptron, gates (or sums) after."""

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        input_dim: int,
        head_dim: int,
        hidden_dim: int,
        head_num: int,
        mlp_num: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
        gru_gating: bool = True,
        gru_bias: float = 2.0,
    ) -> None:
        super().__init__()
        self.gates = nn.ModuleList(
            GRUGatingUnit(input_dim, gru_bias) for _ in range(2 if gru_gating else 0)
        )
        self.attention = AttentionXL(input_dim, head_dim, head_num, dropout)
        self.mlp = MLP(
            input_dim, hidden_dim, input_dim, mlp_num, activation=activation, norm_type=None
        )
        self.norms = nn.ModuleList(nn.LayerNorm(input_dim) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        full = self.norms[0](torch.cat([memory, x]))
        attended = self.attention(full[len(memory) :], full, position, mask)
        x = self._joined(0, x, self.dropout(attended).relu())
        return self._joined(1, x, self.dropout(self.mlp(self.norms[1](x))).relu())

    def _joined(self, i: int, x: Tensor, y: Tensor) -> Tensor:
        return self.gates[i](x, y) if self.gates else x + y


class GTrXL(nn.Module):
    """(T, B, C) -> {'logit': (T, B, `embedding_dim`), 'memory': (L + 1, M, B, `embedding_dim`)}.

    The memory holds the inputs of every layer and the last output for the latest M steps; gradients
    do not flow into it. It starts at zero for every env of a batch.
    """

    def __init__(  # noqa: PLR0913 (established constructor)
        self,
        input_dim: int,
        head_dim: int = 128,
        embedding_dim: int = 256,
        head_num: int = 2,
        mlp_num: int = 2,
        layer_num: int = 3,
        memory_len: int = 64,
        dropout_ratio: float = 0.0,
        activation: Activation = "relu",
        gru_gating: bool = True,
        gru_bias: float = 2.0,
        use_embedding_layer: bool = True,
    ) -> None:
        super().__init__()
        self.embedding: nn.Module = nn.Identity()
        if use_embedding_layer:
            self.embedding = fc_block(input_dim, embedding_dim, activation)
        self.positions = PositionalEmbedding(embedding_dim)
        self.layers = nn.ModuleList(
            GatedTransformerXLLayer(
                *(embedding_dim, head_dim, embedding_dim, head_num, mlp_num),
                *(dropout_ratio, activation, gru_gating, gru_bias),
            )
            for _ in range(layer_num)
        )
        self.embedding_dim, self.memory_len = embedding_dim, memory_len
        self.dropout = nn.Dropout(dropout_ratio)
        self.memory: Tensor | None = None

    def reset_memory(self, batch_size: int | None = None, state: Tensor | None = None) -> None:
        """Go on from `state`, or from nothing; the batch size is that of the next input."""
        self.memory = state

    def get_memory(self) -> Tensor | None:
        return self.memory

    def forward(
        self, x: Tensor, batch_first: bool = False, return_mem: bool = True
    ) -> dict[str, Tensor]:
        x = x.transpose(0, 1) if batch_first else x
        x = self.dropout(self.embedding(x))
        memory = self._memory_for(x)
        n_step, n_key = len(x), len(x) + self.memory_len
        distance = torch.arange(n_key - 1, -1, -1, device=x.device)
        position = self.dropout(self.positions(distance))
        mask = allowed(n_step, n_key, x.device)
        states = [x]
        for layer, remembered in zip(self.layers, memory[:-1], strict=True):
            states.append(layer(states[-1], remembered, position, mask))
        with torch.no_grad():
            recent = torch.cat([memory, torch.stack(states).detach()], dim=1)
            self.memory = recent[:, recent.shape[1] - self.memory_len :]
        out = self.dropout(states[-1])
        output = {"logit": out.transpose(0, 1) if batch_first else out}
        return {**output, "memory": self.memory} if return_mem else output

    def _memory_for(self, x: Tensor) -> Tensor:
        shape = (len(self.layers) + 1, self.memory_len, x.shape[1], self.embedding_dim)
        if self.memory is None:
            return x.new_zeros(shape)
        if self.memory.shape != shape:
            raise ValueError(
                f"memory of shape {tuple(self.memory.shape)} does not fit a batch of {x.shape[1]} "
                f"(expected {shape}); call reset_memory first"
            )
        return self.memory.to(x.device)
