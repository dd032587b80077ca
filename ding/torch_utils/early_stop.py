"""Early stopping: the weights of the lowest loss on data that are not learned from."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn


class EarlyStop:
    """Best weights of `module`; it is over when `patience` losses in a row were no lower."""

    def __init__(self, module: nn.Module, patience: int) -> None:
        self._module, self._patience = module, patience
        self.clear()

    def clear(self) -> None:
        """Begin anew, for other data."""
        self.best, self.since = math.inf, 0
        self._weights: dict[str, Tensor] = {}

    @property
    def over(self) -> bool:
        return self.since >= self._patience

    def note(self, loss: float) -> None:
        if loss < self.best:
            self.best, self.since = loss, 0
            state = self._module.state_dict()
            self._weights = {name: value.clone() for name, value in state.items()}
        else:
            self.since += 1

    @torch.no_grad()
    def restore(self) -> None:
        """Put the best weights back, if later ones were worse."""
        if self.since and self._weights:
            self._module.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "since": self.since, "weights": dict(self._weights)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.since = state["best"], state["since"]
        self._weights = dict(state["weights"])
