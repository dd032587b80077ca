import pytest
import torch
from torch import nn

from ding.torch_utils.network import TwinMLP, activation_of, hidden_layers, mlp, orthogonal_
from ding.utils.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "kind"),
    [("tanh", nn.Tanh), ("ReLU", nn.ReLU), (nn.GELU, nn.GELU), (nn.ELU(), nn.ELU)],
)
def test_activation_by_name_class_or_module(given, kind):
    assert type(activation_of(given)) is kind


def test_unknown_names_say_what_was_meant():
    with pytest.raises(ConfigError, match="did you mean 'tanh'"):
        activation_of("tahn")
    with pytest.raises(ConfigError, match=r"unknown norm_type .XN.; valid: BN, LN"):
        hidden_layers([2, 3], norm_type="XN")


def test_mlp_ends_with_a_linear_layer():
    kinds = [type(layer) for layer in mlp([4, 8, 2], "tanh", "LN")]
    assert kinds == [nn.Linear, nn.LayerNorm, nn.Tanh, nn.Linear]
    assert [type(layer) for layer in mlp([4, 2])] == [nn.Linear]


def single(twin: TwinMLP, member: int, sizes: list[int], norm_type: str | None) -> nn.Sequential:
    """One member of the stack as an ordinary network."""
    net = mlp(sizes, "relu", norm_type)
    linears = [layer for layer in net if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for linear, weight, bias in zip(linears, twin.weights, twin.biases, strict=True):
            linear.weight.copy_(weight[member].T)
            linear.bias.copy_(bias[member, 0])
        norms = [layer for layer in net if isinstance(layer, nn.LayerNorm)]
        for norm, gain, shift in zip(norms, twin.gains, twin.shifts, strict=True):
            norm.weight.copy_(gain[member, 0])
            norm.bias.copy_(shift[member, 0])
    return net


@pytest.mark.parametrize("norm_type", [None, "LN"])
def test_twin_mlp_is_two_networks(norm_type):
    sizes = [5, 16, 16, 3]
    twin = TwinMLP(sizes, "relu", norm_type)
    x = torch.randn(7, 5)
    y = twin(x)
    assert y.shape == (2, 7, 3)
    for member in range(2):
        expected = single(twin, member, sizes, norm_type)(x)
        torch.testing.assert_close(y[member], expected)
    torch.testing.assert_close(twin.first(x), y[0])


def test_twin_mlp_members_start_apart_and_within_the_bounds_of_linear():
    twin = TwinMLP([16, 64, 1])
    assert not torch.equal(twin.weights[0][0], twin.weights[0][1])
    first = torch.cat([twin.weights[0].flatten(), twin.biases[0].flatten()])
    assert first.abs().max() <= 0.25
    assert first.std().item() == pytest.approx(0.25 / 3**0.5, rel=0.1)


def test_twin_mlp_members_get_only_their_own_gradient():
    twin = TwinMLP([3, 4, 1])
    twin(torch.randn(6, 3))[0].sum().backward()
    assert all(parameter.grad[0].abs().sum() > 0 for parameter in twin.parameters())
    assert all(parameter.grad[1].abs().sum() == 0 for parameter in twin.parameters())


def test_twin_mlp_refuses_batch_norm():
    with pytest.raises(ConfigError, match="not 'BN'"):
        TwinMLP([3, 4, 1], norm_type="BN")


def test_orthogonal_init_has_the_gain():
    net = mlp([8, 8, 8])
    orthogonal_(net, gain=3.0)
    weight = net[0].weight
    torch.testing.assert_close(weight @ weight.T, 9.0 * torch.eye(8), atol=1e-4, rtol=0)
    assert not net[0].bias.any()
