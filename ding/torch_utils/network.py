"""Building blocks of the models: activations by name, multi-layer perceptrons, stacked perceptrons.

Letters in shapes: B batch, N members of a stack, I and O inputs and outputs of a layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.utils.errors import ConfigError, nearest

Activation = str | nn.Module | type[nn.Module]

_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
    "leaky_relu": nn.LeakyReLU,
    "sigmoid": nn.Sigmoid,
    "identity": nn.Identity,
}
_NORMS: dict[str, Callable[[int], nn.Module]] = {"LN": nn.LayerNorm, "BN": nn.BatchNorm1d}


def activation_of(activation: Activation) -> nn.Module:
    """The activation that a config names; modules and module classes pass through."""
    if isinstance(activation, nn.Module):
        return activation
    if isinstance(activation, str):
        name = activation.lower()
        if name not in _ACTIVATIONS:
            raise ConfigError(f"unknown activation '{activation}'{nearest(name, _ACTIVATIONS)}")
        return _ACTIVATIONS[name]()
    return activation()


def _in_place(activation: nn.Module) -> nn.Module:
    """For what only the activation sees: no second array of the size of a layer's output."""
    return nn.ReLU(inplace=True) if type(activation) is nn.ReLU else activation


def norm_of(norm_type: str, size: int) -> nn.Module:
    if norm_type not in _NORMS:
        raise ConfigError(f"unknown norm_type '{norm_type}'{nearest(norm_type, _NORMS)}")
    return _NORMS[norm_type](size)


class Layers(nn.Sequential):
    """`nn.Sequential` without a module call per layer, which small networks notice."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self._modules.values():
            x = _call_of(layer)(x)
        return x


def _call_of(layer: nn.Module) -> Callable[[Tensor], Tensor]:
    """`layer`, or if nobody has hooks in it what it comes down to."""
    return layer if layer._forward_hooks or layer._forward_pre_hooks else layer.forward


def hidden_layers(
    sizes: Sequence[int], activation: Activation = "relu", norm_type: str | None = None
) -> list[nn.Module]:
    """Linear, norm, activation from `sizes[0]` inputs through every further size."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers.append(nn.Linear(inputs, outputs))
        if norm_type is not None:
            layers.append(norm_of(norm_type, outputs))
        layers.append(_in_place(activation_of(activation)))
    return layers


def mlp(
    sizes: Sequence[int], activation: Activation = "relu", norm_type: str | None = None
) -> Layers:
    """Hidden layers, then a linear layer to `sizes[-1]` outputs."""
    hidden = hidden_layers(sizes[:-1], activation, norm_type)
    return Layers(*hidden, nn.Linear(sizes[-2], sizes[-1]))


class TwinMLP(nn.Module):
    """Independent perceptrons of one shape evaluated as one: (B, I) -> (N, B, O).

    At the sizes of RL a second critic costs mostly call overhead, which one batched product per
    layer saves.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        activation: Activation = "relu",
        norm_type: str | None = None,
        n_member: int = 2,
    ) -> None:
        super().__init__()
        if norm_type not in (None, "LN"):
            raise ConfigError(f"stacked critics know norm_type None and 'LN', not '{norm_type}'")
        self.activation = _in_place(activation_of(activation))
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        self.gains = nn.ParameterList()
        self.shifts = nn.ParameterList()
        for inputs, outputs in pairwise(sizes):
            self.weights.append(_uniform(n_member, inputs, outputs, inputs))
            self.biases.append(_uniform(n_member, 1, outputs, inputs))
        for outputs in sizes[1:-1] if norm_type else ():
            self.gains.append(nn.Parameter(torch.ones(n_member, 1, outputs)))
            self.shifts.append(nn.Parameter(torch.zeros(n_member, 1, outputs)))

    def forward(self, x: Tensor) -> Tensor:
        stacks = self._stacks()
        n_member = len(stacks[0][0])
        return self._run(x.expand(n_member, *x.shape), *stacks)

    def each(self, x: Tensor) -> Tensor:
        """Every member on inputs of its own: (N, B, I) -> (N, B, O)."""
        return self._run(x, *self._stacks())

    def first(self, x: Tensor) -> Tensor:
        """The first member alone: (B, I) -> (B, O)."""
        return self._run(x, *([stack[0] for stack in part] for part in self._stacks()))

    def _stacks(self) -> list[list[Tensor]]:
        # A `ParameterList` makes a name out of the index for every entry that it is asked for.
        parts = (self.weights, self.biases, self.gains, self.shifts)
        return [[p for p in part._parameters.values() if p is not None] for part in parts]

    def _run(
        self,
        y: Tensor,
        weights: list[Tensor],
        biases: list[Tensor],
        gains: list[Tensor],
        shifts: list[Tensor],
    ) -> Tensor:
        last, activate = len(weights) - 1, _call_of(self.activation)
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            y = _affine(y, weight, bias)
            if i < last:
                if gains:
                    y = F.layer_norm(y, y.shape[-1:]) * gains[i] + shifts[i]
                y = activate(y)
        return y


def _affine(y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if weight.shape[-1] == 1:  # batched products run a single column at a fraction of this speed
        return (y * weight.mT).sum(dim=-1, keepdim=True) + bias
    return torch.baddbmm(bias, y, weight) if weight.ndim == 3 else torch.addmm(bias, y, weight)


def _uniform(n_member: int, rows: int, columns: int, fan_in: int) -> nn.Parameter:
    # The bounds nn.Linear draws both its weights and its biases from.
    bound = 1.0 / math.sqrt(fan_in)
    return nn.Parameter(torch.empty(n_member, rows, columns).uniform_(-bound, bound))


def orthogonal_(module: nn.Module, gain: float = math.sqrt(2.0)) -> None:
    """Orthogonal weights and zero biases in every linear and convolution layer of `module`."""
    for layer in module.modules():
        if isinstance(layer, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(layer.weight, gain)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
