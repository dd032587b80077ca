"""A battle in which both sides are played: a game of two teams, for self-play and leagues.

Either team sees the field as `MicroBattleEnv` shows it to the allies, the second one in a mirror:
each is on the left and goes east to the other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs.base_env import BaseEnv, BaseEnvTimestep
from ding.utils.errors import DingError
from dizoo.micro_battle.envs.duel_arena import DUEL_CONFIG, DuelArena
from dizoo.micro_battle.envs.duel_vector import DuelVector


class DuelEnv(BaseEnv):
    """Observations and actions have a row per team, (2, ...); who kills the other team wins.

    A team gets the share that it takes of the other one's health less the share that it loses, and
    1 for a win, -1 for a defeat; after `episode_limit` actions it is a draw.
    """

    config: ClassVar[dict[str, Any]] = DUEL_CONFIG

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        self.arena = DuelArena(self._cfg, 1)
        self._observation_space, self._action_space = self.arena.spaces()
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float32)
        self._running = False

    def reset(self, **kwargs: Any) -> dict[str, np.ndarray]:
        self.rng = np.random.default_rng(self._next_seed())
        self.arena.reset([0], [self.rng])
        self._running = True
        return self._observed()

    def step(self, action: Any) -> BaseEnvTimestep:
        if not self._running:
            raise DingError(f"{self!r} has no running battle: call reset() before step()")
        actions = np.asarray(action).reshape(1, 2, -1)
        outcome = self.arena.step(actions, np.zeros(1, dtype=np.intp))
        info, over = outcome.info.get(0, {}), bool(outcome.over[0])
        if outcome.cut[0]:
            info["truncated"] = True
        self._running = not over
        return BaseEnvTimestep(self._observed(), outcome.reward[0], over, info)

    def _observed(self) -> dict[str, np.ndarray]:
        return {key: column[0] for key, column in self.arena.observe().items()}

    def random_action(self) -> np.ndarray:
        masks = self.arena.available()[0]
        return np.where(masks, self.rng.random(masks.shape), -1.0).argmax(axis=-1)

    def close(self) -> None:
        self._running = False

    @staticmethod
    def make_vector(cfg: Mapping[str, Any], count: int) -> DuelVector:
        return DuelVector(cfg, count)

    def __repr__(self) -> str:
        return f"DuelEnv({self._cfg['map_name']})"
