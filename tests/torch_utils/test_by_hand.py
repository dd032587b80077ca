"""Passes that are written out, against autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from ding.torch_utils import Adam
from ding.torch_utils.by_hand import Perceptron, hidden_of, stack_of
from ding.torch_utils.network import Layers, TwinMLP, hidden_layers


def by_autograd(
    output: Tensor, grad: Tensor, x: Tensor, optimizer: Adam
) -> tuple[Tensor, list[Tensor]]:
    by_x, *by_parameters = torch.autograd.grad(output, [x, *optimizer.parameters], grad)
    return by_x, by_parameters


def check_same(
    network: nn.Module, by_hand: Perceptron, optimizer: Adam, x: Tensor, seen: Tensor
) -> None:
    """Outputs, gradients of all parameters, and the gradient of what the first layer sees."""
    output = network(x)
    grad = torch.randn_like(output)
    by_x, by_parameters = by_autograd(output, grad, x, optimizer)
    with torch.no_grad():
        run = by_hand.forward(seen)
        torch.testing.assert_close(run[-1], output)
        mine = by_hand.input_gradient(run, grad.clone())
        torch.testing.assert_close(mine.sum(dim=0) if mine.ndim == 3 else mine, by_x)
        by_hand.backward(run, grad.clone())
    for parameter, wanted in zip(optimizer.parameters, by_parameters, strict=True):
        torch.testing.assert_close(optimizer.gradient_of[parameter], wanted)


@pytest.mark.parametrize("sizes", [[3, 8, 8], [5, 7], [4, 6, 1, 9]])
def test_hidden_layers(sizes: list[int]) -> None:
    network = Layers(*hidden_layers(sizes))
    optimizer = Adam(network.parameters())
    by_hand = hidden_of(network, optimizer.gradient_of)
    assert by_hand is not None
    x = torch.randn(16, sizes[0], requires_grad=True)
    check_same(network, by_hand, optimizer, x, x.detach())


@pytest.mark.parametrize("sizes", [[4, 8, 8, 1], [4, 8, 3], [4, 1], [1, 1, 1, 1]])
def test_perceptrons_side_by_side(sizes: list[int]) -> None:
    network = TwinMLP(sizes)
    optimizer = Adam(network.parameters())
    by_hand = stack_of(network, optimizer.gradient_of)
    assert by_hand is not None
    x = torch.randn(16, sizes[0], requires_grad=True)
    check_same(network, by_hand, optimizer, x, x.detach().expand(2, *x.shape))


def test_it_reads_the_weights_as_they_are_now() -> None:
    network = TwinMLP([4, 8, 1])
    by_hand = stack_of(network, None)
    assert by_hand is not None
    network.load_state_dict(TwinMLP([4, 8, 1]).state_dict())
    x = torch.randn(5, 4)
    torch.testing.assert_close(by_hand.forward(x.expand(2, 5, 4))[-1], network(x).detach())


def test_what_is_not_written_out_is_left_to_autograd() -> None:
    for network in (
        Layers(*hidden_layers([3, 4], "tanh")),
        Layers(*hidden_layers([3, 4], norm_type="LN")),
        Layers(nn.Linear(3, 4)),
        nn.Sequential(*hidden_layers([3, 4])),
    ):
        assert hidden_of(network, Adam(network.parameters()).gradient_of) is None
    for stack in (TwinMLP([3, 4, 1], "tanh"), TwinMLP([3, 4, 1], norm_type="LN"), nn.Linear(3, 1)):
        assert stack_of(stack, None) is None
