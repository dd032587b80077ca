"""Distributional heads and noisy layers in NumPy, for `numpy_forward`.

Letters in shapes: B batch (any number of leading axes), A actions, K atoms, N quantiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ding.model.value_head import DistributionHead, QRDQNHead, RainbowHead
from ding.torch_utils.noise import NoiseLinearLayer

Function = Callable[[Any], Any]
Compile = Callable[[nn.Module], Function]


class UnsupportedError(Exception):
    """Only torch can run this module."""


def view(tensor: Tensor) -> np.ndarray:
    if tensor.device.type != "cpu" or tensor.dtype is not torch.float32:
        raise UnsupportedError(f"{tensor.dtype} on {tensor.device}")
    return tensor.detach().numpy()


def _noisy_linear(compiled: Compile, layer: NoiseLinearLayer) -> Function:
    """In the mode that the layer is in now; new noise is seen, another mode is not."""
    weight, bias = view(layer.weight_mu).T, view(layer.bias_mu)
    if not layer.training:
        return lambda x: x.dot(weight) + bias
    weight_sigma, bias_sigma = view(layer.weight_sigma).T, view(layer.bias_sigma)
    in_noise, out_noise = view(layer.in_noise), view(layer.out_noise)

    def noisy(x: np.ndarray) -> np.ndarray:
        noise = (x * in_noise).dot(weight_sigma)
        noise += bias_sigma
        noise *= out_noise
        y = x.dot(weight)
        y += bias
        y += noise
        return y

    return noisy


def _distribution_head(compiled: Compile, head: DistributionHead) -> Function:
    main, n_atom = compiled(head.main), head.n_atom
    return _distribution(lambda x: main(x).reshape(*x.shape[:-1], -1, n_atom), head)


def _rainbow_head(compiled: Compile, head: RainbowHead) -> Function:
    advantage_of, value_of = compiled(head.advantage), compiled(head.value)
    n_atom = head.n_atom

    def atoms_of(x: np.ndarray) -> np.ndarray:
        advantage = advantage_of(x).reshape(*x.shape[:-1], -1, n_atom)
        advantage -= advantage.mean(axis=-2, keepdims=True)
        advantage += value_of(x)[..., None, :]
        return advantage

    return _distribution(atoms_of, head)


def _distribution(atoms_of: Function, head: DistributionHead) -> Function:
    """`atoms_of` gives a fresh (B, A, K) before the softmax."""
    support = view(head.support)

    def distribution(x: np.ndarray) -> dict[str, np.ndarray]:
        p = atoms_of(x)
        p -= np.maximum.reduce(p, axis=-1, keepdims=True)
        np.exp(p, p)
        p /= np.add.reduce(p, axis=-1, keepdims=True)
        return {"logit": p.dot(support), "distribution": p}

    return distribution


def _qrdqn_head(compiled: Compile, head: QRDQNHead) -> Function:
    main, n_quantile = compiled(head.main), head.num_quantiles
    scale = np.float32(1.0 / n_quantile)
    fractions = (np.arange(n_quantile, dtype=np.float32)[:, None] + np.float32(0.5)) * scale

    def quantiles(x: np.ndarray) -> dict[str, np.ndarray]:
        q = main(x).reshape(*x.shape[:-1], -1, n_quantile)
        tau = np.empty((*x.shape[:-1], n_quantile, 1), dtype=np.float32)
        tau[...] = fractions
        return {"logit": np.add.reduce(q, axis=-1) * scale, "q": q, "tau": tau}

    return quantiles


VALUE_MODULES: dict[type[nn.Module], Callable[[Compile, Any], Function]] = {
    NoiseLinearLayer: _noisy_linear,
    DistributionHead: _distribution_head,
    RainbowHead: _rainbow_head,
    QRDQNHead: _qrdqn_head,
}
