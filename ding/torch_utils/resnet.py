"""Residual blocks, https://arxiv.org/abs/1512.03385, and a small network of them.

Letters in shapes: B batch, C channels, (H, W) an image.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from ding.torch_utils.blocks import conv2d_block, fc_block
from ding.torch_utils.network import Activation, activation_of
from ding.utils.errors import ConfigError, nearest

RES_TYPES = ("basic", "bottleneck", "downsample")


class ResBlock(nn.Module):
    """(B, C, H, W) -> (B, C', H, W); 'downsample' halves H and W.

    'basic' is two 3x3 convolutions, 'bottleneck' 1x1, 3x3 and 1x1.
    """

    def __init__(
        self,
        in_channels: int,
        activation: Activation = "relu",
        norm_type: str | None = "BN",
        res_type: str = "basic",
        bias: bool = True,
        out_channels: int | None = None,
    ) -> None:
        super().__init__()
        if res_type not in RES_TYPES:
            raise ConfigError(f"unknown res_type '{res_type}'{nearest(res_type, RES_TYPES)}")
        out = out_channels or in_channels
        self.activation = activation_of(activation)
        stride = 2 if res_type == "downsample" else 1
        kernels = (1, 3, 1) if res_type == "bottleneck" else (3, 3)
        layers = []
        for i, kernel in enumerate(kernels):
            last = i == len(kernels) - 1
            layers.append(
                conv2d_block(
                    in_channels if i == 0 else out,
                    out,
                    kernel,
                    stride if i == 0 else 1,
                    kernel // 2,
                    activation=None if last else self.activation,
                    norm_type=norm_type,
                    bias=bias,
                )
            )
        self.main = nn.Sequential(*layers)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or out != in_channels:
            self.shortcut = conv2d_block(
                in_channels, out, stride, stride, norm_type=norm_type, bias=bias
            )

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.main(x) + self.shortcut(x))


class ResFCBlock(nn.Module):
    """(B, C) -> (B, C) through two fully connected layers and past them."""

    def __init__(
        self,
        in_channels: int,
        activation: Activation = "relu",
        norm_type: str | None = "BN",
        dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.activation = activation_of(activation)
        self.main = nn.Sequential(
            fc_block(in_channels, in_channels, self.activation, norm_type),
            fc_block(in_channels, in_channels, None, norm_type),
        )
        self.dropout = nn.Identity() if dropout is None else nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.activation(self.main(x) + x))


class ResNet(nn.Module):
    """(B, C, H, W) -> (B, `num_classes`): stem, stages of blocks, global average, linear layer."""

    def __init__(
        self,
        in_channels: int = 3,
        num_classes: int = 1000,
        layers: Sequence[int] = (2, 2, 2, 2),
        channels: Sequence[int] = (64, 128, 256, 512),
        activation: Activation = "relu",
        norm_type: str | None = "BN",
    ) -> None:
        super().__init__()
        stem = conv2d_block(
            in_channels, channels[0], 7, 2, 3, activation=activation, norm_type=norm_type
        )
        blocks: list[nn.Module] = [stem, nn.MaxPool2d(3, 2, 1)]
        size = channels[0]
        for stage, (n_block, out) in enumerate(zip(layers, channels, strict=True)):
            for i in range(n_block):
                kind = "downsample" if i == 0 and stage > 0 else "basic"
                blocks.append(ResBlock(size, activation, norm_type, kind, False, out))
                size = out
        self.main = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.output = nn.Linear(size, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.main(x))


def resnet18(in_channels: int = 3, num_classes: int = 1000) -> ResNet:
    return ResNet(in_channels, num_classes)
