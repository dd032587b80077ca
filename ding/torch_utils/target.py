"""A slowly moving copy of a network."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from ding.utils.errors import ConfigError


class TargetNetwork:
    """Copies `source` every `freq` updates, or moves `theta` of the way towards it at each."""

    def __init__(
        self,
        source: nn.Module,
        *,
        freq: int | None = None,
        theta: float | None = None,
        only: Sequence[nn.Parameter] | None = None,
    ) -> None:
        """With `only`, the other parameters are never read and stay as they are."""
        if (freq is None) == (theta is None):
            raise ConfigError(
                f"target_update_freq = {freq} and target_theta = {theta}: set exactly one of them"
            )
        self.module = deepcopy(source).requires_grad_(False)
        followed = {id(p) for p in (source.parameters() if only is None else only)}
        both = zip(self.module.parameters(), source.parameters(), strict=True)
        pairs = [(mine, theirs) for mine, theirs in both if id(theirs) in followed]
        self._own: list[torch.Tensor] = [mine for mine, _ in pairs]
        self._followed: list[torch.Tensor] = [theirs for _, theirs in pairs]
        self._buffers = list(zip(self.module.buffers(), source.buffers(), strict=True))
        self._freq, self._theta, self._count = freq, theta, 0

    @torch.no_grad()
    def update(self) -> None:
        self._count += 1
        if self._freq is not None and self._count % self._freq:
            return
        if self._theta is not None:
            torch._foreach_lerp_(self._own, self._followed, self._theta)
        else:
            torch._foreach_copy_(self._own, self._followed)
        for mine, theirs in self._buffers:
            mine.copy_(theirs)

    def state_dict(self) -> dict[str, Any]:
        return {"module": self.module.state_dict(), "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.module.load_state_dict(state["module"])
        self._count = state["count"]
