"""Forward and backward passes of plain perceptrons, written out.

In networks of a few small layers autograd takes a good part of an update to record operations. The
numbers are those of autograd up to rounding.

Letters in shapes: N members of a stack, B batch, I and O inputs and outputs of a layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ding.torch_utils.network import Layers, TwinMLP

Gradients = Mapping[Tensor, Tensor]
"""Where the gradient of each parameter is to be written."""

_relu_gradient = torch.ops.aten.threshold_backward.grad_input


class Affine:
    """One layer, or a stack of them: weight (I, O) or (N, I, O), bias (1, O) or (N, 1, O).

    The gradients of both are written to `into`, if that is given.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor, into: tuple[Tensor, Tensor] | None = None
    ) -> None:
        self._bias, self._weight, self._transposed = bias, weight, weight.mT
        self._stacked, self._one_output = weight.ndim == 3, weight.shape[-1] == 1
        if into is not None:
            self._weight_grad, self._bias_grad = into
            self._transposed_grad = self._weight_grad.mT

    def forward(self, x: Tensor) -> Tensor:
        if not self._stacked:
            return torch.addmm(self._bias, x, self._weight)
        if self._one_output:  # Batched products are slow at a single column.
            return (x * self._transposed).sum(dim=-1, keepdim=True) + self._bias
        return torch.baddbmm(self._bias, x, self._weight)

    def backward(self, x: Tensor, grad: Tensor) -> None:
        """Write the gradients of weight and bias; `grad` is that of the output."""
        if self._stacked:  # The other way round: a single row is quick.
            torch.bmm(grad.mT, x, out=self._transposed_grad)
        else:
            torch.mm(x.t(), grad, out=self._weight_grad)
        torch.sum(grad, dim=-2, keepdim=True, out=self._bias_grad)

    def input_gradient(self, grad: Tensor) -> Tensor:
        if self._one_output:
            return grad * self._transposed
        product = torch.bmm if self._stacked else torch.mm
        return product(grad, self._transposed)


class Perceptron:
    """Affine layers with ReLU between them."""

    def __init__(self, layers: Sequence[Affine], *, ends_in_relu: bool = False) -> None:
        self._layers, self._ends_in_relu = layers, ends_in_relu

    def forward(self, x: Tensor) -> list[Tensor]:
        """What every layer got, and the output last."""
        seen = [x]
        for i, layer in enumerate(self._layers, 1):
            x = layer.forward(x)
            if i < len(self._layers) or self._ends_in_relu:
                x.relu_()
            seen.append(x)
        return seen

    def backward(self, seen: Sequence[Tensor], grad: Tensor) -> None:
        """Write the gradients of all layers; `grad` is that of the output and may be changed."""
        for i in range(len(self._layers) - 1, -1, -1):
            grad = self._before_relu(seen, grad, i)
            self._layers[i].backward(seen[i], grad)
            if i:
                grad = self._layers[i].input_gradient(grad)

    def input_gradient(self, seen: Sequence[Tensor], grad: Tensor) -> Tensor:
        """By the input; those of the layers are left alone."""
        for i in range(len(self._layers) - 1, -1, -1):
            grad = self._layers[i].input_gradient(self._before_relu(seen, grad, i))
        return grad

    def _before_relu(self, seen: Sequence[Tensor], grad: Tensor, i: int) -> Tensor:
        if i + 1 == len(self._layers) and not self._ends_in_relu:
            return grad
        return _relu_gradient(grad, seen[i + 1], 0.0, grad_input=grad)


def affine_of(layer: nn.Linear, into: Gradients) -> Affine:
    grads = into[layer.weight].t(), into[layer.bias].unsqueeze(0)
    return Affine(layer.weight.detach().t(), layer.bias.detach().unsqueeze(0), grads)


def hidden_of(layers: nn.Module, into: Gradients) -> Perceptron | None:
    """Of linear layers, each with a ReLU behind it; None if there is anything else."""
    if type(layers) is not Layers:
        return None
    parts = list(layers)
    if [type(part) for part in parts] != [nn.Linear, nn.ReLU] * (len(parts) // 2):
        return None
    linear = [affine_of(part, into) for part in parts if isinstance(part, nn.Linear)]
    return Perceptron(linear, ends_in_relu=True)


def stack_of(stack: nn.Module, into: Gradients | None) -> Perceptron | None:
    """Of perceptrons side by side; None if they have anything but ReLU between their layers."""
    if type(stack) is not TwinMLP or len(stack.gains) or type(stack.activation) is not nn.ReLU:
        return None
    layers = []
    for weight, bias in zip(stack.weights, stack.biases, strict=True):
        grads = None if into is None else (into[weight], into[bias])
        layers.append(Affine(weight.detach(), bias.detach(), grads))
    return Perceptron(layers)
