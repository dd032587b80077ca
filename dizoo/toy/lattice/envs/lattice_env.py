"""Lattice: walk to the origin along all axes at once, one of five moves along each.

Episodes start in a random corner of a cube. A step costs the mean distance that is left, so the
best return is the same from every corner: with `distance` 4 and moves of up to 2 it is
-(2 + 0) = -2. With 4 axes there are 5 ** 4 = 625 joint actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import DingEnvWrapper

_MOVES = np.arange(-2, 3)


class Lattice(gym.Env[np.ndarray, np.ndarray]):
    def __init__(self, axes: int, distance: int) -> None:
        self.observation_space = gym.spaces.Box(-distance, distance, (axes,), dtype=np.float32)
        self.action_space = gym.spaces.MultiDiscrete([len(_MOVES)] * axes)
        self._axes, self._distance = axes, distance
        self._place = np.zeros(axes, dtype=np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = self._distance * self.np_random.choice([-1, 1], self._axes)
        return self._obs(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        limit = 2 * self._distance
        self._place = np.clip(self._place + _MOVES[action], -limit, limit)
        left = np.abs(self._place)
        return self._obs(), -float(left.mean()), not left.any(), False, {}

    def _obs(self) -> np.ndarray:
        return (self._place / 2).astype(np.float32)


class LatticeEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {
        **DingEnvWrapper.config,
        # Number of moves in each action.
        "axes": 4,
        # Of the start from the goal, along each axis.
        "distance": 4,
        "max_episode_steps": 30,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        super().__init__(partial(Lattice, merged["axes"], merged["distance"]), merged)
