"""CartPole whose steps take their time: `benchmarks.sleepy:SleepyCartPole-v0` for Gymnasium."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym

SECONDS = 0.005


class SleepyCartPole(gym.Wrapper[Any, Any, Any, Any]):
    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))

    def step(self, action: Any) -> Any:
        time.sleep(SECONDS)
        return self.env.step(action)


gym.register("SleepyCartPole-v0", entry_point=SleepyCartPole)
