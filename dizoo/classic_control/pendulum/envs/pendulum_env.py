"""Pendulum: torques in [-2, 2], in [-1, 1] (`act_scale`), or one of 11 (`continuous=False`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import DingEnvWrapper

_TORQUES = np.linspace(-2.0, 2.0, 11, dtype=np.float32)


class DiscreteTorque(gym.ActionWrapper):
    """Presents 11 evenly spaced torques as a Discrete space."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.action_space = gym.spaces.Discrete(len(_TORQUES))

    def action(self, action: Any) -> np.ndarray:
        return _TORQUES[action : action + 1]


class PendulumEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {
        **DingEnvWrapper.config,
        "env_id": "Pendulum-v1",
        "act_scale": False,
        # False: the torque is one of 11.
        "continuous": True,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        if not merged["continuous"]:
            merged["env_wrapper"] = [DiscreteTorque, *merged["env_wrapper"]]
        super().__init__(cfg=merged)
