"""Bit flipping: turn a row of bits into another one, a bit a step.

Andrychowicz et al. 2017, https://arxiv.org/abs/1707.01495. The observation is the bits and then the
goal's; the reward is 1 where they are the same, which ends the episode, else 0. With 15 bits random
play reaches one goal in 2,500 episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import DingEnvWrapper


class BitFlip(gym.Env[np.ndarray, Any]):
    def __init__(self, n_bits: int) -> None:
        self.observation_space = gym.spaces.Box(0, 1, (2 * n_bits,), dtype=np.float32)
        self.action_space = gym.spaces.Discrete(n_bits)
        self._n_bits = n_bits
        self._state = self._goal = np.zeros(n_bits, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._state, self._goal = self.np_random.integers(0, 2, (2, self._n_bits)).astype(
            np.float32
        )
        while (self._state == self._goal).all():
            self._goal = self.np_random.integers(0, 2, self._n_bits).astype(np.float32)
        return merge_goal(self._state, self._goal), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self._state = self._state.copy()
        self._state[action] = 1 - self._state[action]
        reached = bool((self._state == self._goal).all())
        obs = merge_goal(self._state, self._goal)
        return obs, float(reached), reached, False, {"is_success": reached}


class BitFlipEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {
        **DingEnvWrapper.config,
        # Number of bits; episodes have as many steps at most.
        "n_bits": 5,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        merged["max_episode_steps"] = merged["max_episode_steps"] or merged["n_bits"]
        super().__init__(partial(BitFlip, merged["n_bits"]), merged)


def split_goal(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """State, desired and achieved goal of observations (..., 2n)."""
    half = obs.shape[-1] // 2
    return obs[..., :half], obs[..., half:], obs[..., :half]


def merge_goal(state: np.ndarray, goal: np.ndarray) -> np.ndarray:
    return np.concatenate([state, goal], axis=-1)


def goal_reward(achieved: np.ndarray, desired: np.ndarray) -> np.ndarray:
    return (achieved == desired).all(axis=-1).astype(np.float32)
