"""Observations on the scale of their running moments, for the networks of reward models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.torch_utils.running_statistics import Moments


class ObsScale:
    """Observations, nested ones too, in deviations from their running mean, clamped."""

    def __init__(self, low: float, high: float) -> None:
        self._range = (low, high)
        self._moments: dict[str, Moments] = {}

    def update(self, obs: Any) -> None:
        for path, leaf in _leaves(obs):
            self._moments.setdefault(path, Moments()).merge(Moments.of(leaf))

    def __call__(self, obs: Any) -> Any:
        scaled = {path: self._scaled(path, leaf) for path, leaf in _leaves(obs)}
        return scaled if isinstance(obs, Mapping) else scaled[""]

    def _scaled(self, path: str, leaf: np.ndarray) -> np.ndarray:
        moments = self._moments.get(path)
        if moments is None:
            return np.clip(leaf.astype(np.float32), *self._range)
        return np.clip((leaf - moments.mean) / moments.scale, *self._range).astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        return {path: moments.plain() for path, moments in self._moments.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._moments = {path: Moments(**plain) for path, plain in state.items()}


def _leaves(obs: Any) -> list[tuple[str, np.ndarray]]:
    if isinstance(obs, Mapping):
        return [(str(key), np.asarray(leaf)) for key, leaf in obs.items()]
    return [("", np.asarray(obs))]
