"""Reach: steer a point in the plane to a goal, by Gymnasium's convention of goals.

The point starts in the middle of a square of width 2 and moves at most 0.1 along each axis in a
step. A step costs 1 unless the point is within 0.1 of the goal; episodes have 50 steps and never
end before. Return -50 is a goal that was never reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import DingEnvWrapper

_MOVE, _NEAR = 0.1, 0.1
Obs = dict[str, np.ndarray]


class Reach(gym.Env[Any, np.ndarray]):
    def __init__(self) -> None:
        place = gym.spaces.Box(-1, 1, (2,), dtype=np.float32)
        self.observation_space = gym.spaces.Dict(
            observation=place, achieved_goal=place, desired_goal=place
        )
        self.action_space = gym.spaces.Box(-1, 1, (2,), dtype=np.float32)
        self._place = self._goal = np.zeros(2, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, dict[str, Any]]:
        super().reset(seed=seed)
        self._place = np.zeros(2, np.float32)
        self._goal = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self._obs(), {}

    def step(self, action: np.ndarray) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        moved = self._place + _MOVE * np.clip(action, -1, 1)
        self._place = np.clip(moved, -1, 1).astype(np.float32)
        reward = float(self.compute_reward(self._place, self._goal, {}))
        return self._obs(), reward, False, False, {"is_success": reward == 0}

    def compute_reward(self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any) -> Any:
        """0 near the goal, else -1; of one place or of rows."""
        distance = np.linalg.norm(np.asarray(achieved_goal) - desired_goal, axis=-1)
        return -(distance > _NEAR).astype(np.float32)

    def compute_terminated(
        self, achieved_goal: np.ndarray, desired_goal: np.ndarray, info: Any
    ) -> Any:
        """Never: the point is to stay at its goal."""
        return np.zeros(np.shape(desired_goal)[:-1], bool)

    def _obs(self) -> Obs:
        return {
            "observation": self._place,
            "achieved_goal": self._place,
            "desired_goal": self._goal,
        }


class ReachEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {**DingEnvWrapper.config, "max_episode_steps": 50}

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(Reach, {**self.config, **(cfg or {})})
