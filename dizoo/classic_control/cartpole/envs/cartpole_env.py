"""CartPole with episodes of 200 steps (v0) or 500 (v1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ding.envs import DingEnvWrapper
from ding.utils.errors import DingError, nearest

_STEPS = {"CartPole-v0": 200, "CartPole-v1": 500}


class CartPoleEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {**DingEnvWrapper.config, "env_id": "CartPole-v0"}

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        env_id = merged["env_id"]
        if env_id not in _STEPS:
            raise DingError(f"unknown env_id '{env_id}' for CartPoleEnv{nearest(env_id, _STEPS)}")
        # Both ids are the same simulator; Gymnasium warns of v0 and may drop it.
        steps = merged["max_episode_steps"] or _STEPS[env_id]
        super().__init__(cfg={**merged, "env_id": "CartPole-v1", "max_episode_steps": steps})
