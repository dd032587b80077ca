"""One battle as an env.

It has SMAC's interface and, as far as they are public, its rules; results on it are not comparable
with those of SMAC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.video import EpisodeRecorder
from ding.utils.errors import DingError
from dizoo.micro_battle.envs.arena import CONFIG, METADATA, Arena
from dizoo.micro_battle.envs.battle import Battles
from dizoo.micro_battle.envs.micro_battle_vector import MicroBattleVector
from dizoo.micro_battle.envs.render import picture


class MicroBattleEnv(BaseEnv):
    """One battle; `eval_episode_return` is 1 for a win, else 0."""

    config: ClassVar[dict[str, Any]] = CONFIG
    metadata: ClassVar[dict[str, Any]] = METADATA

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        self._arena = Arena(self._cfg, 1)
        self._observation_space, self._action_space = self._arena.spaces()
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)
        self._running = False
        self._recorder: EpisodeRecorder | None = None
        if self._cfg["replay_path"]:
            self.enable_save_replay(self._cfg["replay_path"])

    @property
    def battles(self) -> Battles:
        """Its only battle, as scripted players want it."""
        return self._arena.battles

    def reset(self, **kwargs: Any) -> dict[str, np.ndarray]:
        if self._recorder is not None:
            self._recorder.end_episode()
        self._arena.reset([0], [np.random.default_rng(self._next_seed())])
        self._running = True
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if not self._running:
            raise DingError(f"{self!r} has no running battle: call reset() before step()")
        actions = np.asarray(action).reshape(1, -1)
        if self.battles.state["steps"][0] == 0:
            self._record()
        reward, outcome, cut = self._arena.step(actions, np.zeros(1, dtype=np.intp))
        self._record()
        over, info = bool(outcome.over[0]), {}
        if over or cut[0]:
            self._running = False
            info = self._arena.last_info(bool(outcome.won[0]), 0)
            if not over:
                info["truncated"] = True
            if self._recorder is not None:
                self._recorder.end_episode()
        return BaseEnvTimestep(self._observed(), float(reward[0]), bool(info), info)

    def _observed(self) -> dict[str, np.ndarray]:
        return {key: column[0] for key, column in self._arena.observe().items()}

    def _record(self) -> None:
        if self._recorder is not None:
            self._recorder.add(self)

    def render(self) -> np.ndarray:
        """The field as an RGB image, (height, width, 3)."""
        return picture(self._arena.battles, 0)

    def enable_save_replay(self, replay_path: str) -> None:
        """Save the episodes from the next reset on as mp4 files in this directory."""
        self._recorder = EpisodeRecorder(replay_path, f"micro_battle_{self._cfg['map_name']}")

    def random_action(self) -> np.ndarray:
        """Available actions, each as likely."""
        masks = self._arena.battles.available()[0].astype(np.int8)
        return self._action_space.sample(masks)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        super().seed(seed, dynamic_seed)
        self._action_space.seed(seed)

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.end_episode()
        self._running = False

    @staticmethod
    def create_collector_env_cfg(cfg: Mapping[str, Any]) -> list[Any]:
        cfgs = BaseEnv.create_collector_env_cfg(cfg)
        for one in cfgs:
            one["replay_path"] = None
        return cfgs

    @staticmethod
    def make_vector(cfg: Mapping[str, Any], count: int) -> MicroBattleVector:
        return MicroBattleVector(cfg, count)

    def __repr__(self) -> str:
        return f"MicroBattleEnv({self._cfg['map_name']})"
