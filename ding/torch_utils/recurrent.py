"""Recurrent layers that speak of states as dicts, stacked or one per env.

A state is {'h': (L, B, H), 'c': (L, B, H)} (a GRU has no 'c'), or a list of B dicts of (L, 1, H),
or None for zeros; in a list an entry of None is an env that has just begun.
Letters in shapes: T time, B batch, I inputs, H hidden size, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ding.torch_utils.blocks import build_normalization
from ding.utils.errors import ConfigError, nearest

State = dict[str, Tensor]
AnyState = State | Sequence[State | None] | None


class Recurrent(nn.Module):
    """Base of the layers: states in any form, and episodes that begin inside a sequence."""

    keys: tuple[str, ...] = ("h", "c")

    def __init__(self, input_size: int, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers

    def forward(
        self,
        inputs: Tensor,
        prev_state: AnyState = None,
        list_next_state: bool = True,
        reset: Tensor | None = None,
    ) -> tuple[Tensor, Any]:
        """(T, B, I) -> (T, B, H) and the state after it, as a list of B dicts or stacked.

        Where `reset` (T, B) is true the state is zero before that step.
        """
        state = self.stacked_state(prev_state, inputs)
        outputs = []
        for begin, end in _spans(reset, len(inputs)):
            if reset is not None:
                keep = (reset[begin] == 0).to(inputs.dtype).unsqueeze(-1)
                state = {key: value * keep for key, value in state.items()}
            output, state = self._run(inputs[begin:end], state)
            outputs.append(output)
        output = outputs[0] if len(outputs) == 1 else torch.cat(outputs)
        return output, split_state(state) if list_next_state else state

    def stacked_state(self, state: AnyState, inputs: Tensor) -> State:
        """The state as {'h': (L, B, H), ...} with zeros for what has none."""
        if isinstance(state, dict):
            return state
        if state is None or all(one is None for one in state):
            zeros = inputs.new_zeros(self.num_layers, inputs.shape[1], self.hidden_size)
            return dict.fromkeys(self.keys, zeros)
        if len(state) != inputs.shape[1]:
            raise ValueError(f"got {len(state)} states for a batch of {inputs.shape[1]}")
        zero = inputs.new_zeros(self.num_layers, 1, self.hidden_size)
        return {
            key: torch.cat([zero if one is None else one[key] for one in state], dim=1)
            for key in self.keys
        }

    def _run(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        raise NotImplementedError


def _spans(reset: Tensor | None, length: int) -> list[tuple[int, int]]:
    """The sequence cut where any episode begins."""
    if reset is None:
        return [(0, length)]
    begins = (reset != 0).flatten(1).any(dim=1).nonzero().flatten().tolist()
    begins = sorted({0, *begins})
    return list(zip(begins, [*begins[1:], length], strict=True))


def split_state(state: State) -> list[State]:
    """{'h': (L, B, H), ...} -> B dicts of (L, 1, H)."""
    columns = [value.split(1, dim=1) for value in state.values()]
    return [dict(zip(state, row, strict=True)) for row in zip(*columns, strict=True)]


class LSTM(Recurrent):
    """LSTM with a norm on the inputs' and the hidden state's share of the gates."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        norm_type: str | None = "LN",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers)
        sizes = [input_size, *[hidden_size] * (num_layers - 1)]
        self.wx = nn.ModuleList(nn.Linear(size, 4 * hidden_size, bias=False) for size in sizes)
        self.wh = nn.ModuleList(
            nn.Linear(hidden_size, 4 * hidden_size, bias=False) for _ in range(num_layers)
        )
        self.bias = nn.Parameter(torch.zeros(num_layers, 4 * hidden_size))
        self.norms = nn.ModuleList(
            nn.Identity() if norm_type is None else build_normalization(norm_type)(4 * hidden_size)
            for _ in range(2 * num_layers)
        )
        self.dropout = nn.Dropout(dropout)
        for linear in (*self.wx, *self.wh):
            nn.init.orthogonal_(linear.weight)

    def _run(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        x, last_h, last_c = inputs, [], []
        for i in range(self.num_layers):
            h, c = state["h"][i], state["c"][i]
            # The inputs' share does not wait for the state: one product for all steps.
            from_inputs = self.norms[2 * i](self.wx[i](x)) + self.bias[i]
            steps = []
            for gates in from_inputs.unbind(0):
                gates = gates + self.norms[2 * i + 1](self.wh[i](h))
                enter, forget, leave, new = gates.chunk(4, dim=-1)
                c = forget.sigmoid() * c + enter.sigmoid() * new.tanh()
                h = leave.sigmoid() * c.tanh()
                steps.append(h)
            x = torch.stack(steps)
            last_h.append(h)
            last_c.append(c)
            if i < self.num_layers - 1:
                x = self.dropout(x)
        return x, {"h": torch.stack(last_h), "c": torch.stack(last_c)}


class PytorchLSTM(Recurrent):
    """`nn.LSTM` behind the common interface."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers)
        self.main = nn.LSTM(input_size, hidden_size, num_layers, dropout=dropout)

    def _run(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        output, (h, c) = self.main(inputs, (state["h"], state["c"]))
        return output, {"h": h, "c": c}


class GRU(Recurrent):
    """`nn.GRU` behind the common interface."""

    keys = ("h",)

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers)
        self.main = nn.GRU(input_size, hidden_size, num_layers, dropout=dropout)

    def _run(self, inputs: Tensor, state: State) -> tuple[Tensor, State]:
        output, h = self.main(inputs, state["h"])
        return output, {"h": h}


LSTM_TYPES = ("normal", "pytorch", "gru")


def get_lstm(
    lstm_type: str,
    input_size: int,
    hidden_size: int,
    num_layers: int = 1,
    norm_type: str | None = "LN",
    dropout: float = 0.0,
) -> Recurrent:
    """'normal' (with norms), 'pytorch' or 'gru'; only the first looks at `norm_type`."""
    if lstm_type == "normal":
        return LSTM(input_size, hidden_size, num_layers, norm_type, dropout)
    if lstm_type == "pytorch":
        return PytorchLSTM(input_size, hidden_size, num_layers, dropout)
    if lstm_type == "gru":
        return GRU(input_size, hidden_size, num_layers, dropout)
    raise ConfigError(f"unknown lstm_type '{lstm_type}'{nearest(lstm_type, LSTM_TYPES)}")


def sequence_mask(lengths: Tensor, max_len: int | None = None) -> Tensor:
    """(B,) or (B, 1) -> (B, `max_len`): true inside each sequence."""
    lengths = lengths.reshape(-1, 1)
    n_step = int(lengths.max()) if max_len is None else max_len
    return torch.arange(n_step, device=lengths.device) < lengths
