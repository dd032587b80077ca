"""A cooperative game of numbers: 1 - (a - 0.5)^2 - (a + b)^2, best played by 0.5 and -0.5."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import ParallelAgentsEnv
from ding.utils.registry import ENV_REGISTRY


class AimingGame:
    possible_agents: ClassVar[list[str]] = ["first", "second"]

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Box(0, 1, (1,), np.float32)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._of_all(np.ones(1, np.float32)), {}

    def step(self, action: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        a, b = (float(x[0]) for x in action.values())
        reward = 1 - (a - 0.5) ** 2 - (a + b) ** 2
        seen = self._of_all(np.ones(1, np.float32))
        return seen, self._of_all(reward), self._of_all(True), self._of_all(False), {}

    def _of_all(self, value: Any) -> dict[str, Any]:
        return dict.fromkeys(self.possible_agents, value)


@ENV_REGISTRY.register("aiming_game")
class AimingGameEnv(ParallelAgentsEnv):
    config: ClassVar[dict[str, Any]] = {
        **ParallelAgentsEnv.config,
        "reward": "mean",
        "obs_agent_id": True,
        "act_scale": True,
    }

    def _new_env(self) -> AimingGame:
        return AimingGame()
