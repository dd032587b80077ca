import pytest
import torch

from ding.torch_utils import ResBlock, ResFCBlock, ResNet, resnet18
from ding.utils.errors import ConfigError


@pytest.mark.parametrize(
    ("res_type", "out", "size"), [("basic", None, 8), ("bottleneck", 6, 8), ("downsample", 6, 4)]
)
def test_shapes_of_blocks(res_type, out, size):
    block = ResBlock(4, "relu", "BN", res_type, out_channels=out)
    assert block(torch.randn(2, 4, 8, 8)).shape == (2, out or 4, size, size)


def test_a_block_that_adds_nothing_is_its_input():
    block, x = ResBlock(4, "relu", None), torch.rand(2, 4, 8, 8)
    for parameter in block.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(block(x), x)
    dense, y = ResFCBlock(4, "relu", None), torch.rand(2, 4)
    for parameter in dense.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(dense(y), y)


def test_unknown_kind():
    with pytest.raises(ConfigError, match="did you mean 'basic'"):
        ResBlock(4, res_type="basc")


def test_resnet():
    net = ResNet(3, 5, layers=[1, 1], channels=[4, 8])
    net(torch.randn(2, 3, 32, 32)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    assert sum(p.numel() for p in resnet18().parameters()) > 11_000_000
