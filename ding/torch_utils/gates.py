"""Activations that are more than a function of one number, and parameters kept in a range.

Letters in shapes: B batch, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Swish = nn.SiLU


class Lambda(nn.Module):
    """A function as a module."""

    def __init__(self, f: Callable[[Any], Any]) -> None:
        super().__init__()
        self.f = f

    def forward(self, x: Any) -> Any:
        return self.f(x)


class GLU(nn.Module):
    """Linear unit whose inputs are gated by a context; for vectors ('fc') or images ('conv2d')."""

    def __init__(
        self, input_dim: int, output_dim: int, context_dim: int, input_type: str = "fc"
    ) -> None:
        super().__init__()
        if input_type not in ("fc", "conv2d"):
            raise ValueError(f"input_type must be 'fc' or 'conv2d', not '{input_type}'")
        layer: Any = nn.Linear
        if input_type == "conv2d":
            layer = lambda inputs, outputs: nn.Conv2d(inputs, outputs, 1)  # noqa: E731
        self.gate = layer(context_dim, input_dim)
        self.linear = layer(input_dim, output_dim)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        return self.linear(x * self.gate(context).sigmoid())


class GumbelSoftmax(nn.Module):
    """Logits (B, A) -> samples (B, A) with gradient; `hard` gives one-hot rows."""

    def forward(self, x: Tensor, temperature: float = 1.0, hard: bool = False) -> Tensor:
        return F.gumbel_softmax(x, tau=temperature, hard=hard, dim=-1)


class NonegativeParameter(nn.Module):
    """A trained tensor that cannot become negative: the exponential of a free one."""

    def __init__(
        self, data: Tensor | None = None, requires_grad: bool = True, delta: float = 1e-8
    ) -> None:
        super().__init__()
        self._delta = delta
        start = torch.zeros(1) if data is None else data
        self.log_data = nn.Parameter((start + delta).log(), requires_grad=requires_grad)

    def forward(self) -> Tensor:
        return self.log_data.exp()

    @property
    def data(self) -> Tensor:
        return self.log_data.data.exp()

    def set_data(self, data: Tensor) -> None:
        with torch.no_grad():
            self.log_data.copy_((data + self._delta).log())


class TanhParameter(nn.Module):
    """A trained tensor inside (-1, 1): the hyperbolic tangent of a free one."""

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        super().__init__()
        start = torch.zeros(1) if data is None else data
        self.data_inv = nn.Parameter(start.atanh(), requires_grad=requires_grad)

    def forward(self) -> Tensor:
        return self.data_inv.tanh()

    @property
    def data(self) -> Tensor:
        return self.data_inv.data.tanh()

    def set_data(self, data: Tensor) -> None:
        with torch.no_grad():
            self.data_inv.copy_(data.atanh())
