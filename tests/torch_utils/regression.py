"""A small network and the squared error of what it should say."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def net(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))


def loss_of(model: nn.Module) -> Any:
    def loss(batch: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        error = (model(batch["x"]).squeeze(1) - batch["y"]).square()
        return error.mean(), {"largest": error.detach().max()}

    return loss


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8, 3, generator=generator)
    return {"x": x, "y": 3 * x.sum(dim=1)}
