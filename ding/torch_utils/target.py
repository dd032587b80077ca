"""Target networks: slowly moving copies of a network."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from ding.utils.errors import ConfigError


class TargetUpdate:
    """Rule of a target network: a copy every `freq` updates, or `theta` of the way at each."""

    def __init__(self, freq: int | None = None, theta: float | None = None) -> None:
        if (freq is None) == (theta is None):
            raise ConfigError(
                f"target_update_freq = {freq} and target_theta = {theta}: set exactly one of them"
            )
        self.count = 0
        self._freq = freq
        self._average = None if theta is None else get_ema_multi_avg_fn(1.0 - theta)

    def due(self) -> bool:
        """Count one more update and say whether the target changes at it."""
        self.count += 1
        return self._freq is None or self.count % self._freq == 0

    @torch.no_grad()
    def move(self, own: list[Tensor], followed: list[Tensor]) -> None:
        if self._average is not None:
            self._average(own, followed, 0)  # it does not look at the count
            return
        for mine, theirs in zip(own, followed, strict=True):
            mine.copy_(theirs)


class TargetNetwork:
    """Copy of `source` that follows it by a `TargetUpdate` of `freq` or `theta`."""

    def __init__(
        self,
        source: nn.Module,
        *,
        freq: int | None = None,
        theta: float | None = None,
        only: Sequence[nn.Parameter] | None = None,
    ) -> None:
        """With `only`, the other parameters are never read and stay as they are."""
        self._rule = TargetUpdate(freq, theta)
        self.module = deepcopy(source).requires_grad_(False)
        followed = {id(p) for p in (source.parameters() if only is None else only)}
        both = zip(self.module.parameters(), source.parameters(), strict=True)
        pairs = [(mine, theirs) for mine, theirs in both if id(theirs) in followed]
        self._own: list[Tensor] = [mine for mine, _ in pairs]
        self._followed: list[Tensor] = [theirs for _, theirs in pairs]
        self._buffers = list(zip(self.module.buffers(), source.buffers(), strict=True))

    def update(self) -> None:
        if self._rule.due():
            self._rule.move(self._own, self._followed)
            for mine, theirs in self._buffers:
                mine.copy_(theirs)

    def state_dict(self) -> dict[str, Any]:
        return {"module": self.module.state_dict(), "count": self._rule.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.module.load_state_dict(state["module"])
        self._rule.count = state["count"]
