"""CartPole that can be won only once a file is there: `benchmarks.chaos_env:GatedCartPole-v0`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium as gym

GATE = "DING_CHAOS_GATE"
SHUT_STEPS, OPEN_STEPS = 100, 200


class GatedCartPole(gym.Wrapper[Any, Any, Any, Any]):
    """Episodes are cut after 100 steps before, after 200 steps then: there is as much to learn."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))
        self._gate = Path(os.environ[GATE])
        self._left = 0

    def reset(self, **kwargs: Any) -> Any:
        self._left = OPEN_STEPS if self._gate.exists() else SHUT_STEPS
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._left -= 1
        return obs, reward, terminated, truncated or self._left <= 0, info


gym.register("GatedCartPole-v0", entry_point=GatedCartPole)
