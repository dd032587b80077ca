"""Layer, norm, activation and dropout in one call, and perceptrons made of such blocks.

`activation` is a name, a module or None for none; `norm_type` one of the names of
`build_normalization`. Letters in shapes: B batch, C channels, N labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.torch_utils.network import Activation, activation_of
from ding.utils.errors import ConfigError, nearest

Size = int | tuple[int, ...]

_NORMS: dict[tuple[str, int], Callable[..., nn.Module]] = {
    ("BN", 1): nn.BatchNorm1d,
    ("BN", 2): nn.BatchNorm2d,
    ("LN", 1): nn.LayerNorm,
    ("LN", 2): lambda n_channel: nn.GroupNorm(1, n_channel),
    ("IN", 1): nn.InstanceNorm1d,
    ("IN", 2): nn.InstanceNorm2d,
    ("SyncBN", 1): nn.SyncBatchNorm,
    ("SyncBN", 2): nn.SyncBatchNorm,
}
_PAD_MODES = {"zero": "zeros", "reflect": "reflect", "replication": "replicate"}


def build_activation(activation: str, inplace: bool | None = None) -> nn.Module:
    """The activation of this name; only `relu` can work in place."""
    if inplace and activation != "relu":
        raise ConfigError(f"activation '{activation}' cannot work in place; only 'relu' can")
    return nn.ReLU(inplace=True) if inplace else activation_of(activation)


def build_normalization(norm_type: str, dim: int | None = None) -> Callable[..., nn.Module]:
    """Constructor of a norm from the number of channels, for (B, C) with `dim` 1, images with 2.

    'LN' on images normalises over channels and places together.
    """
    key = (norm_type, 1 if dim is None else dim)
    if key not in _NORMS:
        known = [name for name, _ in _NORMS]
        raise ConfigError(
            f"no norm_type '{norm_type}' of dimension {dim}{nearest(norm_type, known)}"
        )
    return _NORMS[key]


def _block(
    layer: nn.Module,
    size: int,
    dim: int,
    activation: Activation | None,
    norm_type: str | None,
    dropout: float | None = None,
) -> nn.Sequential:
    layers = [layer]
    if norm_type is not None:
        layers.append(build_normalization(norm_type, dim)(size))
    if activation is not None:
        layers.append(activation_of(activation))
    if dropout is not None:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


def fc_block(
    in_channels: int,
    out_channels: int,
    activation: Activation | None = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
) -> nn.Sequential:
    """Linear, norm, activation, dropout."""
    dropout = dropout_probability if use_dropout else None
    return _block(
        nn.Linear(in_channels, out_channels), out_channels, 1, activation, norm_type, dropout
    )


def conv1d_block(  # noqa: PLR0913 (established call)
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    activation: Activation | None = None,
    norm_type: str | None = None,
) -> nn.Sequential:
    layer = nn.Conv1d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
    return _block(layer, out_channels, 1, activation, norm_type)


def conv2d_block(  # noqa: PLR0913 (established call)
    in_channels: int,
    out_channels: int,
    kernel_size: Size,
    stride: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    pad_type: str = "zero",
    activation: Activation | None = None,
    norm_type: str | None = None,
    num_groups_for_gn: int = 1,
    bias: bool = True,
) -> nn.Sequential:
    """`norm_type` 'GN' normalises the channels in `num_groups_for_gn` groups."""
    if pad_type not in _PAD_MODES:
        raise ConfigError(f"unknown pad_type '{pad_type}'{nearest(pad_type, _PAD_MODES)}")
    mode: Any = _PAD_MODES[pad_type]
    sizes: Any = (kernel_size, stride, padding, dilation, groups, bias, mode)
    layer: nn.Module = nn.Conv2d(in_channels, out_channels, *sizes)
    if norm_type == "GN":
        layer = nn.Sequential(layer, nn.GroupNorm(num_groups_for_gn, out_channels))
        norm_type = None
    return _block(layer, out_channels, 2, activation, norm_type)


def deconv2d_block(  # noqa: PLR0913 (established call)
    in_channels: int,
    out_channels: int,
    kernel_size: Size,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    activation: Activation | None = None,
    norm_type: str | None = None,
) -> nn.Sequential:
    sizes: Any = (kernel_size, stride, padding, output_padding, groups)
    layer = nn.ConvTranspose2d(in_channels, out_channels, *sizes)
    return _block(layer, out_channels, 2, activation, norm_type)


def MLP(  # noqa: N802, PLR0913 (established name and call)
    in_channels: int,
    hidden_channels: int,
    out_channels: int,
    layer_num: int,
    layer_fn: Callable[[int, int], nn.Module] | None = None,
    activation: Activation | None = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
    output_activation: bool = True,
    output_norm: bool = True,
    last_linear_layer_init_zero: bool = False,
) -> nn.Sequential:
    """`layer_num` blocks in one flat `nn.Sequential`; the last may lack norm and activation."""
    if layer_num < 1:
        raise ConfigError(f"MLP needs layer_num of at least 1, got {layer_num}")
    make = layer_fn or nn.Linear
    sizes = [in_channels, *[hidden_channels] * (layer_num - 1), out_channels]
    dropout = dropout_probability if use_dropout else None
    layers: list[nn.Module] = []
    for i in range(layer_num):
        hidden = i < layer_num - 1
        layers += _block(
            make(sizes[i], sizes[i + 1]),
            sizes[i + 1],
            1,
            activation if hidden or output_activation else None,
            norm_type if hidden or output_norm else None,
            dropout if hidden or output_activation else None,
        )
    if last_linear_layer_init_zero:
        _zero_last_linear(layers)
    return nn.Sequential(*layers)


def _zero_last_linear(layers: list[nn.Module]) -> None:
    for layer in reversed(layers):
        if isinstance(layer, nn.Linear):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
            return


def normed_linear(
    in_features: int, out_features: int, bias: bool = True, scale: float = 1.0
) -> nn.Linear:
    """A linear layer whose every output has weights of norm `scale`, and no bias at first."""
    layer = nn.Linear(in_features, out_features, bias)
    with torch.no_grad():
        layer.weight.mul_(scale / layer.weight.norm(dim=1, keepdim=True))
        if bias:
            layer.bias.zero_()
    return layer


def normed_conv2d(
    in_channels: int, out_channels: int, kernel_size: Size, scale: float = 1.0, **kwargs: Any
) -> nn.Conv2d:
    """As `normed_linear`, for every output channel of a convolution."""
    size: Any = kernel_size
    layer = nn.Conv2d(in_channels, out_channels, size, **kwargs)
    with torch.no_grad():
        layer.weight.mul_(
            scale / torch.linalg.vector_norm(layer.weight, dim=(1, 2, 3), keepdim=True)
        )
        if layer.bias is not None:
            layer.bias.zero_()
    return layer


def one_hot(val: Tensor, num: int, num_first: bool = False) -> Tensor:
    """(B, ...) of integers -> (B, ..., N) of floats, or (N, B, ...) with `num_first`."""
    # Not F.one_hot: that looks at the values, which a compiled step has not got yet.
    code = torch.zeros(*val.shape, num, device=val.device)
    code = code.scatter(-1, val.long().unsqueeze(-1), 1.0)
    return code.movedim(-1, 0) if num_first else code


def binary_encode(y: Tensor, max_val: Tensor) -> Tensor:
    """(B,) -> (B, bits of `max_val`), highest bit first; larger numbers count as `max_val`."""
    n_bit = int(max_val).bit_length()
    clipped = y.long().clamp(max=int(max_val)).unsqueeze(-1)
    shifts = torch.arange(n_bit - 1, -1, -1, device=y.device)
    return ((clipped >> shifts) & 1).float()


class Flatten(nn.Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self._dims = (start_dim, end_dim)

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(*self._dims)


class NearestUpsample(nn.Module):
    """(B, C, H, W) larger by `scale_factor`, every new pixel a copy of the nearest."""

    def __init__(self, scale_factor: float | list[float]) -> None:
        super().__init__()
        self.scale_factor = scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=self.scale_factor, mode="nearest")


class BilinearUpsample(NearestUpsample):
    """(B, C, H, W) larger by `scale_factor`, new pixels interpolated."""

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(
            x, scale_factor=self.scale_factor, mode="bilinear", align_corners=False
        )
