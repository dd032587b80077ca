"""Noisy layers for exploration, https://arxiv.org/abs/1706.10295."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ding.torch_utils.blocks import build_normalization
from ding.torch_utils.network import Activation, Layers, activation_of


class NoiseLinearLayer(nn.Module):
    """Linear layer with factorised Gaussian noise on its weights while training, none in `eval`.

    The noise stays the same until `reset_noise`.
    """

    def __init__(self, in_channels: int, out_channels: int, sigma0: float = 0.4) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.sigma0 = in_channels, out_channels, sigma0
        self.weight_mu = nn.Parameter(torch.empty(out_channels, in_channels))
        self.weight_sigma = nn.Parameter(torch.empty(out_channels, in_channels))
        self.bias_mu = nn.Parameter(torch.empty(out_channels))
        self.bias_sigma = nn.Parameter(torch.empty(out_channels))
        self.in_noise: Tensor
        self.out_noise: Tensor
        self.register_buffer("in_noise", torch.empty(in_channels))
        self.register_buffer("out_noise", torch.empty(out_channels))
        self.reset_parameters()
        self.reset_noise()

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.in_channels)
        for mu, sigma in ((self.weight_mu, self.weight_sigma), (self.bias_mu, self.bias_sigma)):
            nn.init.uniform_(mu, -bound, bound)
            nn.init.constant_(sigma, self.sigma0 * bound)

    def reset_noise(self) -> None:
        for noise in (self.in_noise, self.out_noise):
            # In place: compiled steps and target networks hold on to these buffers.
            noise.normal_()
            noise.copy_(noise.sign() * noise.abs().sqrt())

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return F.linear(x, self.weight_mu, self.bias_mu)
        # (W + S * (o i')) x = W x + o * (S (i * x)): the noisy matrix itself is never made.
        noise = F.linear(x * self.in_noise, self.weight_sigma) + self.bias_sigma
        return F.linear(x, self.weight_mu, self.bias_mu) + self.out_noise * noise


def reset_noise(module: nn.Module) -> None:
    """New noise in every noisy layer of `module`."""
    for layer in module.modules():
        if isinstance(layer, NoiseLinearLayer):
            layer.reset_noise()


def noise_block(
    in_channels: int,
    out_channels: int,
    activation: Activation | None = None,
    norm_type: str | None = None,
    use_dropout: bool = False,
    dropout_probability: float = 0.5,
    sigma0: float = 0.4,
) -> nn.Sequential:
    """Noisy linear layer, norm, activation, dropout."""
    layers: list[nn.Module] = [NoiseLinearLayer(in_channels, out_channels, sigma0)]
    if norm_type is not None:
        layers.append(build_normalization(norm_type, 1)(out_channels))
    if activation is not None:
        layers.append(activation_of(activation))
    if use_dropout:
        layers.append(nn.Dropout(dropout_probability))
    return nn.Sequential(*layers)


def noisy_mlp(
    sizes: Sequence[int], activation: Activation = "relu", norm_type: str | None = None
) -> Layers:
    """As `network.mlp`, all layers noisy."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += noise_block(inputs, outputs, activation, norm_type)
    return Layers(*layers, NoiseLinearLayer(sizes[-2], sizes[-1]))
