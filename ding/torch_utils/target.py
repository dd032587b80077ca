"""A slowly moving copy of a network."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import nn

from ding.utils.errors import ConfigError


class TargetNetwork:
    """Copies `source` every `freq` updates, or moves `theta` of the way towards it at each."""

    def __init__(
        self, source: nn.Module, *, freq: int | None = None, theta: float | None = None
    ) -> None:
        if (freq is None) == (theta is None):
            raise ConfigError(
                f"target_update_freq = {freq} and target_theta = {theta}: set exactly one of them"
            )
        self.module = deepcopy(source).requires_grad_(False)
        self._source = source
        self._freq, self._theta, self._count = freq, theta, 0

    @torch.no_grad()
    def update(self) -> None:
        self._count += 1
        if self._freq is not None and self._count % self._freq:
            return
        target: list[torch.Tensor] = list(self.module.parameters())
        source: list[torch.Tensor] = list(self._source.parameters())
        if self._theta is not None:
            torch._foreach_lerp_(target, source, self._theta)
        else:
            torch._foreach_copy_(target, source)
        for mine, theirs in zip(self.module.buffers(), self._source.buffers(), strict=True):
            mine.copy_(theirs)

    def state_dict(self) -> dict[str, Any]:
        return {"module": self.module.state_dict(), "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.module.load_state_dict(state["module"])
        self._count = state["count"]
