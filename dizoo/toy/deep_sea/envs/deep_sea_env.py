"""Deep sea: dive through a grid, one row a step; treasure lies where every step went right.

Osband et al. 2020 (bsuite), https://arxiv.org/abs/1908.03568. Which of the two actions goes right
differs from cell to cell. A step to the right costs 0.01 / size, the treasure is worth 1, so the
best return is 0.99 and all others are at most 0. Random play finds it in one of 2**size episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import DingEnvWrapper


class DeepSea(gym.Env[np.ndarray, Any]):
    def __init__(self, size: int, mapping_seed: int | None) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (size * size,), dtype=np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self._size = size
        self._right = np.ones((size, size), np.int64)
        if mapping_seed is not None:
            self._right = np.random.default_rng(mapping_seed).integers(0, 2, (size, size))
        self._row = self._column = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._row = self._column = 0
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        right = action == self._right[self._row, self._column]
        last = self._size - 1
        found = right and self._row == last and self._column == last
        reward = float(found) - (0.01 / self._size if right else 0.0)
        self._column = min(self._column + 1, last) if right else max(self._column - 1, 0)
        self._row += 1
        return self._obs(), reward, self._row == self._size, False, {"is_success": found}

    def _obs(self) -> np.ndarray:
        """One cell is 1; none after the last row."""
        cells = np.zeros((self._size, self._size), np.float32)
        if self._row < self._size:
            cells[self._row, self._column] = 1
        return cells.reshape(-1)


class DeepSeaEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {
        **DingEnvWrapper.config,
        # Rows, columns and steps of an episode.
        "size": 20,
        # Chooses which action goes right in each cell; None: action 1 everywhere.
        "mapping_seed": 0,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        super().__init__(partial(DeepSea, merged["size"], merged["mapping_seed"]), merged)
