"""Slime volley as a game of two, both of whom act at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.two_player import SeatsSpace
from ding.envs.video import EpisodeRecorder
from ding.utils.errors import ConfigError, DingError
from dizoo.slime_volley.envs.render import picture
from dizoo.slime_volley.envs.score import METADATA, forfeit_info, last_info
from dizoo.slime_volley.envs.slime_volley_vector import SlimeVolleyVector
from dizoo.slime_volley.envs.volley import MOVES, Volley


class SlimeVolleyEnv(BaseEnv):
    """Who wins a rally gets 1, the other one -1; a game ends when one of them has lost five.

    The return is the difference in points, -5 to 5. Observations are (2, 12), see `Volley.seen`.
    """

    config: ClassVar[dict[str, Any]] = {
        # Rallies that a player may lose.
        "lives": 5,
        # Frames after which a game is over, whoever leads.
        "frames": 3000,
        # Frames that an action lasts; their number is what an env step takes.
        "action_repeat": 1,
        # Save every evaluated game as a video in this directory.
        "replay_path": None,
    }
    metadata: ClassVar[dict[str, Any]] = METADATA

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        for key in ("lives", "frames", "action_repeat"):
            if not isinstance(self._cfg[key], int) or self._cfg[key] < 1:
                raise ConfigError(f"env.{key} = {self._cfg[key]!r}: must be a number from 1 on")
        lives = self._cfg["lives"]
        self._observation_space = gym.spaces.Box(-np.inf, np.inf, (2, 12), dtype=np.float32)
        self._action_space = SeatsSpace(gym.spaces.Discrete(len(MOVES)), 2)
        self._reward_space = gym.spaces.Box(-lives, lives, (2,), dtype=np.float32)
        self._running = False
        self._recorder: EpisodeRecorder | None = None
        if self._cfg["replay_path"]:
            self.enable_save_replay(self._cfg["replay_path"])

    def reset(self, **kwargs: Any) -> np.ndarray:
        self._end_film()
        self.rng = np.random.default_rng(self._next_seed())
        self.volley = Volley(self.rng)
        self.points, self._frame, self._running = [0, 0], 0, True
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if not self._running:
            raise DingError(f"{self!r} has no running game: call reset() before step()")
        first, second = (int(x) for x in np.reshape(action, 2))
        if not {first, second} <= set(range(len(MOVES))):
            return self._forfeited((first, second))
        before = list(self.points)
        for _ in range(self._cfg["action_repeat"]):
            self._play((first, second))
            if not self._running:
                break
        gained = np.subtract(self.points, before)
        info: dict[str, Any] = {} if self._running else self._last_info()
        reward = (gained - gained[::-1]).astype(np.float32)
        return BaseEnvTimestep(self._observed(), reward, not self._running, info)

    def _play(self, moves: tuple[int, int]) -> None:
        winner = self.volley.step(moves)
        self._frame += 1
        if winner is not None:
            self.points[winner] += 1
        self._running = max(self.points) < self._cfg["lives"] and self._frame < self._cfg["frames"]
        if self._recorder is not None:
            self._recorder.add(self)
            if not self._running:
                self._end_film()

    def _last_info(self) -> dict[str, Any]:
        last = last_info(self.points)
        return last if max(self.points) >= self._cfg["lives"] else {**last, "truncated": True}

    def _forfeited(self, moves: tuple[int, int]) -> BaseEnvTimestep:
        self._running = False
        self._end_film()
        info = forfeit_info(moves, self._cfg["lives"])
        return BaseEnvTimestep(self._observed(), info["eval_episode_return"].copy(), True, info)

    def _observed(self) -> np.ndarray:
        return np.stack([self.volley.seen(player) for player in (0, 1)])

    def render(self) -> np.ndarray:
        """The court as an RGB image, (height, width, 3)."""
        return picture(self.volley, self.points)

    def enable_save_replay(self, replay_path: str) -> None:
        """Save the games from the next reset on as mp4 files in this directory."""
        self._recorder = EpisodeRecorder(replay_path, "slime_volley")

    def _end_film(self) -> None:
        if self._recorder is not None:
            self._recorder.end_episode()

    def close(self) -> None:
        self._end_film()
        self._running = False

    @staticmethod
    def create_collector_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        cfgs = BaseEnv.create_collector_env_cfg(cfg)
        for one in cfgs:
            one["replay_path"] = None
        return cfgs

    @staticmethod
    def make_vector(cfg: Mapping[str, Any], count: int) -> SlimeVolleyVector:
        return SlimeVolleyVector({**SlimeVolleyEnv.config, **cfg}, count)

    def __repr__(self) -> str:
        return "SlimeVolleyEnv"
