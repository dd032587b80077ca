"""MountainCar with a reward at the goal alone: 1 there, 0 on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym

from ding.envs import DingEnvWrapper


class AtTheGoal(gym.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, float(terminated), terminated, truncated, info


def _make() -> gym.Env[Any, Any]:
    return AtTheGoal(gym.make("MountainCar-v0"))


class SparseMountainCarEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = DingEnvWrapper.config

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(_make, {**self.config, **(cfg or {})})
