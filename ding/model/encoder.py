"""Observations to feature vectors. Observations keep the environment's dtype up to here.

Letters in shapes: B batch (any number of leading axes), F features, (C, H, W) an image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from ding.torch_utils.network import Activation, Layers, activation_of, hidden_layers
from ding.utils.errors import ConfigError

ObsShape = int | Sequence[int] | Mapping[str, Any]

SMALLEST_IMAGE = 16
"""Fewest pixels a side that are convolved; what is smaller is flattened."""
_NATURE = ((8, 4, 3), (4, 2, 1))
"""Kernels and strides of Mnih et al. 2015, for 36 pixels a side and more."""
_SMALL = ((3, 3, 3), (2, 2, 1))
_FROM_PIXELS = 36
IMAGE_SIZES = (32, 64, 64, 128)
"""Channels of three convolutions and the features, where nobody says others."""


def shape_of(shape: Any, name: str) -> tuple[int, ...]:
    """`n` or a sequence of positive integers as a tuple."""
    sizes = (shape,) if isinstance(shape, Integral) else shape
    if not isinstance(sizes, Sequence) or isinstance(sizes, str):
        raise ConfigError(f"{name} must be a positive integer or a sequence of them, got {shape!r}")
    if not all(isinstance(size, Integral) and int(size) > 0 for size in sizes):
        raise ConfigError(f"{name} must hold positive integers, got {shape!r}")
    return tuple(int(size) for size in sizes)


def size_of(shape: Any, name: str) -> int:
    """Number of elements of an array of this shape."""
    return math.prod(shape_of(shape, name))


def as_float(x: Tensor) -> Tensor:
    """uint8 frames as numbers in [0, 1], every other dtype as float32."""
    if x.dtype is torch.float32:
        return x
    return x.float().div_(255.0) if x.dtype is torch.uint8 else x.float()


def is_image(shape: Any) -> bool:
    """Whether arrays of this shape are (C, H, W), large enough to convolve."""
    if not isinstance(shape, Sequence) or len(shape) != 3:
        return False
    return min(shape[1:]) >= SMALLEST_IMAGE


def holds_image(shape: ObsShape) -> bool:
    """Whether that is an image, or a dict with one."""
    return any(map(holds_image, shape.values())) if isinstance(shape, Mapping) else is_image(shape)


class FCEncoder(nn.Module):
    """(B, *obs_shape) -> (B, F) through fully connected layers."""

    def __init__(
        self,
        obs_shape: int | Sequence[int],
        hidden_size_list: Sequence[int],
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        shape = shape_of(obs_shape, "obs_shape")
        self.obs_ndim = len(shape)
        self.output_size = int(hidden_size_list[-1])
        sizes = [math.prod(shape), *hidden_size_list]
        self.main = Layers(*hidden_layers(sizes, activation, norm_type))

    def forward(self, x: Tensor) -> Tensor:
        x = as_float(x)
        if self.obs_ndim != 1:
            x = x.flatten(-self.obs_ndim) if self.obs_ndim else x.unsqueeze(-1)
        return self.main(x)


class ConvEncoder(nn.Module):
    """(B, C, H, W) -> (B, F): one convolution per kernel, the remaining sizes fully connected.

    Without kernels and strides they are those that fit the image.
    """

    def __init__(
        self,
        obs_shape: Sequence[int],
        hidden_size_list: Sequence[int] = (32, 64, 64, 128),
        activation: Activation = "relu",
        kernel_size: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        shape = shape_of(obs_shape, "obs_shape")
        usual = _NATURE if min(shape[1:], default=0) >= _FROM_PIXELS else _SMALL
        kernel_size = usual[0] if kernel_size is None else kernel_size
        stride = usual[1] if stride is None else stride
        padding = padding if padding is not None else [0] * len(kernel_size)
        _check_convolutions(shape, hidden_size_list, kernel_size, stride, padding)
        n_conv = len(kernel_size)
        self.output_size = int(hidden_size_list[-1])
        channels = [shape[0], *hidden_size_list[:n_conv]]
        layers: list[nn.Module] = []
        for i in range(n_conv):
            conv = nn.Conv2d(channels[i], channels[i + 1], kernel_size[i], stride[i], padding[i])
            layers += [conv, activation_of(activation)]
        area = _output_area(shape, kernel_size, stride, padding)
        sizes = [channels[-1] * area, *(hidden_size_list[n_conv:] or [self.output_size])]
        self.main = Layers(*layers, nn.Flatten(), *hidden_layers(sizes, activation, norm_type))

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            features = self.forward(x.reshape(-1, *x.shape[-3:]))
            return features.reshape(*x.shape[:-3], self.output_size)
        if x.is_cpu and torch.is_grad_enabled():
            # In this layout forward and backward of 256 frames take half to two thirds of the time,
            # of 32 frames four fifths; forward alone would gain nothing.
            x = x.contiguous(memory_format=torch.channels_last)
        return self.main(as_float(x))


def _check_convolutions(
    shape: tuple[int, ...],
    hidden_size_list: Sequence[int],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> None:
    if len(shape) != 3:
        raise ConfigError(f"ConvEncoder needs obs_shape (C, H, W), got {shape}")
    if not len(kernel_size) == len(stride) == len(padding):
        raise ConfigError(
            f"kernel_size, stride and padding need the same length, "
            f"got {len(kernel_size)}, {len(stride)}, {len(padding)}"
        )
    if len(hidden_size_list) < len(kernel_size):
        raise ConfigError(
            f"hidden_size_list {list(hidden_size_list)} is shorter than kernel_size "
            f"{list(kernel_size)}; give one size per convolution and then the fully connected ones"
        )


def _output_area(
    shape: tuple[int, ...],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> int:
    height, width = shape[1:]
    for kernel, step, pad in zip(kernel_size, stride, padding, strict=True):
        height = (height + 2 * pad - kernel) // step + 1
        width = (width + 2 * pad - kernel) // step + 1
        if min(height, width) < 1:
            raise ConfigError(
                f"obs_shape {shape} is too small for kernel_size {list(kernel_size)} with stride "
                f"{list(stride)}; use smaller kernels, or flatten the observation"
            )
    return height * width


class DictEncoder(nn.Module):
    """A dict of observations -> (B, F): every entry encoded on its own, then concatenated.

    With images, sizes for three convolutions are theirs, and the rest is for all; without so many
    images get the usual ones.
    """

    def __init__(
        self,
        obs_shape: Mapping[str, Any],
        hidden_size_list: Sequence[int],
        activation: Activation = "relu",
        norm_type: str | None = None,
    ) -> None:
        super().__init__()
        if not obs_shape:
            raise ConfigError("obs_shape is an empty dict; it needs one shape per entry")
        self.keys = tuple(obs_shape)
        sizes_of = _sizes_beside_images if holds_image(obs_shape) else _same_sizes
        self.parts = nn.ModuleList(
            encoder_for(shape, sizes_of(shape, hidden_size_list), activation, norm_type)
            for shape in obs_shape.values()
        )
        self.output_size = sum(output_size(part) for part in self.parts)

    def forward(self, x: Mapping[str, Any]) -> Tensor:
        pairs = zip(self.keys, self.parts, strict=True)
        return torch.cat([part(x[key]) for key, part in pairs], dim=-1)


def _same_sizes(shape: Any, sizes: Sequence[int]) -> Sequence[int]:
    return sizes


def _sizes_beside_images(shape: Any, sizes: Sequence[int]) -> Sequence[int]:
    """Sizes for an entry of a dict with images, of those for the whole dict."""
    n_conv = len(IMAGE_SIZES) - 1
    if isinstance(shape, Mapping) and holds_image(shape):
        return sizes
    if is_image(shape):
        return sizes if len(sizes) > n_conv else [*IMAGE_SIZES[:n_conv], sizes[-1]]
    return sizes[n_conv:] if len(sizes) > n_conv else sizes


Encoder = FCEncoder | ConvEncoder | DictEncoder


def output_size(encoder: nn.Module) -> int:
    assert isinstance(encoder, Encoder)
    return encoder.output_size


def encoder_for(
    obs_shape: ObsShape,
    hidden_size_list: Sequence[int],
    activation: Activation = "relu",
    norm_type: str | None = None,
) -> Encoder:
    """The encoder that fits the observation: dict, image (C, H, W) or vector.

    Images of few pixels a side are vectors.
    """
    if not shape_of(hidden_size_list, "encoder_hidden_size_list"):
        raise ConfigError("encoder_hidden_size_list is empty; it needs at least one size")
    if isinstance(obs_shape, Mapping):
        return DictEncoder(obs_shape, hidden_size_list, activation, norm_type)
    shape = shape_of(obs_shape, "obs_shape")
    if is_image(shape):
        return ConvEncoder(shape, hidden_size_list, activation, norm_type=norm_type)
    return FCEncoder(shape, hidden_size_list, activation, norm_type)
