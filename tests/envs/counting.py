"""An env whose every number is known: obs is (seed of the episode, step), reward is the step."""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs import BaseEnv, BaseEnvTimestep


class CountingEnv(BaseEnv):
    """`events` maps (episode, step) to what shall happen there; step 0 is the reset."""

    _observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float32)
    _reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)

    def __init__(
        self, length: int = 3, events: dict[tuple[int, int], str] | None = None, tag: str = "t"
    ) -> None:
        super().__init__({})
        self._action_space = gym.spaces.Discrete(4)
        self.length, self.events, self.tag = length, events or {}, tag
        self.episode = -1
        self.closed = 0
        self.actions: list[Any] = []
        self.kwargs: dict[str, Any] = {}

    def reset(self, **kwargs: Any) -> np.ndarray:
        self.kwargs = kwargs
        self.episode += 1
        self.steps = 0
        self.episode_seed = self._next_seed() or 0
        return self._obs(self.events.get((self.episode, 0)))

    def _obs(self, event: str | None) -> Any:
        if event == "raise":
            raise ZeroDivisionError("boom")
        if event == "sleep":
            time.sleep(5)
        if event == "nan obs":
            return np.array([0, np.nan], dtype=np.float32)
        if event == "inf obs":
            return np.array([np.inf, -np.inf], dtype=np.float32)
        if event == "shape":
            return np.zeros(3, dtype=np.float32)
        if event == "dtype":
            return np.zeros(2, dtype=complex)
        return np.array([(self.episode_seed or 0) % 1000, self.steps], dtype=np.float64)

    def step(self, action: Any) -> BaseEnvTimestep:
        self.actions.append(action)
        self.steps += 1
        event = self.events.get((self.episode, self.steps))
        obs = self._obs(event)
        done = self.steps == self.length
        info: dict[str, Any] = {}
        if done:
            info["eval_episode_return"] = float(sum(range(1, self.steps + 1)))
        if event == "abnormal":
            info["abnormal"] = True
        if event == "truncate":
            info["truncated"], done = True, True
        reward = float("nan") if event == "nan reward" else float(self.steps)
        return BaseEnvTimestep(obs, reward, done, info)

    def close(self) -> None:
        self.closed += 1

    def shout(self) -> str:
        return self.tag
