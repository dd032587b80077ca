"""CartPole that never ends early: 200 steps, each worth 1 while the pole is up and the cart there.

How long an episode lasts says nothing about the reward here, which imitation is fairly judged by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.envs.classic_control.cartpole import CartPoleEnv as Simulator

from ding.envs import DingEnvWrapper


class NeverOver(gym.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, _, fallen, _, info = self.env.step(action)
        simulator = self.env.unwrapped
        assert isinstance(simulator, Simulator)
        simulator.steps_beyond_terminated = None  # it would warn of what is meant here
        return obs, 0.0 if fallen else 1.0, False, False, info


def _make() -> gym.Env[Any, Any]:
    return NeverOver(Simulator())


class FixedHorizonCartPoleEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {**DingEnvWrapper.config, "max_episode_steps": 200}

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__(_make, {**self.config, **(cfg or {})})
