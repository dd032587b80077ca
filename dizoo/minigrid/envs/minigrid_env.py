"""MiniGrid's envs by their ids, needs the extra `minigrid`. The text of the mission is left out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import DingEnvWrapper
from ding.envs.packages import register_package

_SIZES = (11, 6, 3)
"""Kinds of objects, colours and states of doors: the three planes of an image."""
_DIRECTIONS = 4


class Encoded(gym.ObservationWrapper[Any, Any, Any]):
    """Image and direction as one-hot numbers: a vector, or planes (C, H, W)."""

    def __init__(self, env: gym.Env[Any, Any], flat: bool) -> None:
        super().__init__(env)
        space = env.observation_space
        assert isinstance(space, gym.spaces.Dict)
        height, width, _ = space["image"].shape or ()
        n_plane = sum(_SIZES)
        planes = (n_plane + _DIRECTIONS, height, width)
        shape = (height * width * n_plane + _DIRECTIONS,) if flat else planes
        self.observation_space = gym.spaces.Box(0, 1, shape, dtype=np.float32)
        self._flat = flat

    def observation(self, observation: Any) -> np.ndarray:
        image = observation["image"]
        planes = [np.eye(n, dtype=np.float32)[image[..., i]] for i, n in enumerate(_SIZES)]
        cells = np.concatenate(planes, axis=-1)
        direction = np.eye(_DIRECTIONS, dtype=np.float32)[observation["direction"]]
        if self._flat:
            return np.concatenate([cells.reshape(-1), direction])
        faced = np.broadcast_to(direction, (*cells.shape[:2], _DIRECTIONS))
        return np.concatenate([cells, faced], axis=-1).transpose(2, 0, 1)


def _make(env_id: str, flat: bool, full: bool, max_step: int | None) -> gym.Env[Any, Any]:
    register_package(env_id)
    options: dict[str, Any] = {} if max_step is None else {"max_steps": max_step}
    env = gym.make(env_id, **options)
    if full:
        from minigrid.wrappers import FullyObsWrapper

        env = FullyObsWrapper(env)  # type: ignore[no-untyped-call]
    return Encoded(env, flat)


class MiniGridEnv(DingEnvWrapper):
    config: ClassVar[dict[str, Any]] = {
        **DingEnvWrapper.config,
        "env_id": "MiniGrid-Empty-8x8-v0",
        # A vector; False: planes (C, H, W) for convolutions.
        "flat_obs": True,
        # The whole grid instead of what the agent sees.
        "full_obs": False,
        # Steps of an episode; None: as the env has it.
        "max_step": None,
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        merged = {**self.config, **(cfg or {})}
        make = partial(
            _make, merged["env_id"], merged["flat_obs"], merged["full_obs"], merged["max_step"]
        )
        super().__init__(make, {**merged, "env_id": None})
