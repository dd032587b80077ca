"""Squashing of values so that networks see returns of moderate size."""

from __future__ import annotations

import torch
from torch import Tensor


def value_transform(x: Tensor, eps: float = 1e-2) -> Tensor:
    """sign(x) (sqrt(|x| + 1) - 1) + eps x, https://arxiv.org/abs/1805.11593."""
    return torch.sign(x) * (torch.sqrt(torch.abs(x) + 1) - 1) + eps * x


def value_inv_transform(x: Tensor, eps: float = 1e-2) -> Tensor:
    """The inverse of `value_transform`."""
    if eps == 0.0:
        return torch.sign(x) * ((torch.abs(x) + 1) ** 2 - 1)
    # Solve eps s^2 + s - (1 + eps + |x|) = 0 for s = sqrt(|y| + 1), in a form that does not cancel.
    c = torch.abs(x) + 1 + eps
    root = 2 * c / (1 + torch.sqrt(1 + 4 * eps * c))
    return torch.sign(x) * (root**2 - 1)


def symlog(x: Tensor) -> Tensor:
    """sign(x) log(1 + |x|), https://arxiv.org/abs/2301.04104."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def inv_symlog(x: Tensor) -> Tensor:
    """The inverse of `symlog`."""
    return torch.sign(x) * torch.expm1(torch.abs(x))
