"""CartPole-v1 that shows positions only: velocities have to be remembered from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from dizoo.classic_control.cartpole.envs.cartpole_env import CartPoleEnv

_POSITIONS = [0, 2]  # of the cart, and the angle of the pole


class PositionsOnly(gym.ObservationWrapper[np.ndarray, Any, np.ndarray]):
    def __init__(self, env: gym.Env[np.ndarray, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Box)
        low, high = space.low[_POSITIONS], space.high[_POSITIONS]
        self.observation_space = gym.spaces.Box(low, high, dtype=np.float32)

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return observation[_POSITIONS]


class NoVelocityEnv(CartPoleEnv):
    config: ClassVar[dict[str, Any]] = {**CartPoleEnv.config, "env_id": "CartPole-v1"}

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        super().__init__({**merged, "env_wrapper": [PositionsOnly, *merged["env_wrapper"]]})
