"""Moving-v0 and Sliding-v0: actions are {'action_type': 0 to 2, 'action_args': (2,)}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
from gymnasium.wrappers import TimeLimit

from ding.envs import DingEnvWrapper
from ding.utils.errors import DingError, nearest
from dizoo.gym_hybrid.envs.tasks import Moving, Sliding

_TASKS: dict[str, type[Moving]] = {"Moving-v0": Moving, "Sliding-v0": Sliding}
_STEPS = 200


class GymHybridEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {**DingEnvWrapper.config, "env_id": "Moving-v0"}

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        env_id = merged["env_id"]
        if env_id not in _TASKS:
            raise DingError(f"unknown env_id '{env_id}' for GymHybridEnv{nearest(env_id, _TASKS)}")
        super().__init__(cfg=merged)

    def _bare_env(self) -> gym.Env[Any, Any]:
        kwargs = dict(self._cfg["env_kwargs"])
        if self._render_mode is not None:
            kwargs["render_mode"] = self._render_mode
        env = _TASKS[self._cfg["env_id"]](**kwargs)
        return TimeLimit(env, self._cfg["max_episode_steps"] or _STEPS)
