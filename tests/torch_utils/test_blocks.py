import pytest
import torch
from torch import nn

from ding.torch_utils import (
    MLP,
    BilinearUpsample,
    Flatten,
    NearestUpsample,
    binary_encode,
    build_activation,
    build_normalization,
    conv1d_block,
    conv2d_block,
    deconv2d_block,
    fc_block,
    normed_conv2d,
    normed_linear,
    one_hot,
)
from ding.utils.errors import ConfigError


def kinds(block):
    return [type(layer) for layer in block]


def test_fc_block_holds_what_was_asked_for():
    assert kinds(fc_block(3, 4)) == [nn.Linear]
    block = fc_block(3, 4, "relu", "LN", use_dropout=True)
    assert kinds(block) == [nn.Linear, nn.LayerNorm, nn.ReLU, nn.Dropout]
    assert block(torch.randn(2, 3)).shape == (2, 4)


@pytest.mark.parametrize("norm_type", [None, "BN", "LN", "IN", "GN"])
def test_conv2d_block(norm_type):
    block = conv2d_block(3, 4, 3, 2, 1, activation="relu", norm_type=norm_type, num_groups_for_gn=2)
    assert block(torch.randn(2, 3, 8, 8)).shape == (2, 4, 4, 4)


def test_padding_by_reflection_sees_the_border():
    block = conv2d_block(1, 1, 3, padding=1, pad_type="reflect", bias=False)
    nn.init.ones_(block[0].weight)
    assert torch.equal(block(torch.ones(1, 1, 3, 3)), torch.full((1, 1, 3, 3), 9.0))
    with pytest.raises(ConfigError, match="did you mean 'reflect'"):
        conv2d_block(1, 1, 3, pad_type="reflct")


def test_other_convolutions():
    assert conv1d_block(3, 4, 3, activation="relu", norm_type="BN")(torch.randn(2, 3, 9)).shape == (
        *(2, 4, 7),
    )
    assert deconv2d_block(3, 4, 2, 2, norm_type="BN")(torch.randn(2, 3, 4, 4)).shape == (2, 4, 8, 8)


def test_mlp_layers():
    net = MLP(3, 8, 2, 3, activation="relu", norm_type="LN")
    one = [nn.Linear, nn.LayerNorm, nn.ReLU]
    assert kinds(net) == one * 3
    bare = MLP(3, 8, 2, 2, activation="relu", output_activation=False, output_norm=False)
    assert kinds(bare) == [nn.Linear, nn.ReLU, nn.Linear]
    zero = MLP(3, 8, 2, 2, activation=nn.Tanh(), last_linear_layer_init_zero=True)
    assert torch.equal(zero(torch.randn(4, 3)), torch.zeros(4, 2))
    made = MLP(3, 8, 2, 2, layer_fn=normed_linear)
    assert made[0].weight.norm(dim=1).allclose(torch.ones(8))
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        MLP(3, 8, 2, 0)


def test_normed_layers():
    layer = normed_linear(3, 4, scale=2.0)
    assert layer.weight.norm(dim=1).allclose(torch.full((4,), 2.0))
    conv = normed_conv2d(3, 4, 3, scale=0.5, stride=2)
    assert conv.weight.flatten(1).norm(dim=1).allclose(torch.full((4,), 0.5))
    assert conv.bias.abs().sum() == 0


def test_codes():
    assert one_hot(torch.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert one_hot(torch.tensor([0, 2]), 3, num_first=True).shape == (3, 2)
    code = binary_encode(torch.tensor([0, 5, 9]), torch.tensor(6))
    assert code.tolist() == [[0, 0, 0], [1, 0, 1], [1, 1, 0]]


def test_upsampling_and_flatten():
    x = torch.tensor([[[[1.0, 2.0]]]])
    assert NearestUpsample(2)(x).tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2]]]]
    assert BilinearUpsample(2)(x)[0, 0, 0].tolist() == [1.0, 1.25, 1.75, 2.0]
    assert Flatten()(torch.zeros(2, 3, 4)).shape == (2, 12)


def test_names_of_activations_and_norms():
    assert build_activation("relu", inplace=True).inplace
    assert build_normalization("BN", dim=2) is nn.BatchNorm2d
    with pytest.raises(ConfigError, match="only 'relu' can"):
        build_activation("tanh", inplace=True)
    with pytest.raises(ConfigError, match="no norm_type 'XN'"):
        build_normalization("XN", dim=1)
