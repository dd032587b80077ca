"""The same battles of two teams side by side, for the env manager 'gym_vector'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from dizoo.micro_battle.envs.arena import METADATA
from dizoo.micro_battle.envs.duel_arena import DUEL_CONFIG, DuelArena


class DuelVector(VectorEnv[Any, Any, Any]):
    """`count` battles as a vector env that resets battles when it is told to."""

    def __init__(self, cfg: Mapping[str, Any], count: int) -> None:
        self.metadata = {**METADATA, "autoreset_mode": AutoresetMode.DISABLED}
        self.arena = DuelArena({**DUEL_CONFIG, **cfg}, count)
        self.num_envs = count
        self.single_observation_space, self.single_action_space = self.arena.spaces()

    def reset(
        self, *, seed: Any = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin the battles of `options['reset_mask']`, or all; `seed`: None or one for each."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        seeds = [None] * self.num_envs if seed is None else list(seed)
        index = np.flatnonzero(mask).tolist()
        self.arena.reset(index, [np.random.default_rng(seeds[i]) for i in index])
        return self.arena.observe(), {}

    def step(
        self, actions: np.ndarray, index: np.ndarray | None = None
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act in the battles `index`, None: in all; the others stand still. (N, 2, A) actions."""
        index = np.arange(self.num_envs) if index is None else index
        outcome = self.arena.step(np.asarray(actions)[index], index)
        reward = np.zeros((self.num_envs, 2), dtype=np.float32)
        over, cut = np.zeros((2, self.num_envs), dtype=bool)
        reward[index], over[index], cut[index] = outcome.reward, outcome.over, outcome.cut
        infos: dict[str, Any] = {}
        for k, info in outcome.info.items():
            infos = self._add_info(infos, info, int(index[k]))
        return self.arena.observe(), reward, over & ~cut, cut, infos
