"""The same battles side by side, for the env manager 'gym_vector'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from ding.envs.video import EpisodeRecorder
from dizoo.micro_battle.envs.arena import CONFIG, METADATA, Arena, View
from dizoo.micro_battle.envs.render import picture


class MicroBattleVector(VectorEnv[Any, Any, Any]):
    """`count` battles as a vector env that resets battles when it is told to."""

    def __init__(self, cfg: Mapping[str, Any], count: int) -> None:
        self.metadata = {**METADATA, "autoreset_mode": AutoresetMode.DISABLED}
        self._arena = Arena({**CONFIG, **cfg}, count)
        self.num_envs = count
        self.single_observation_space, self.single_action_space = self._arena.spaces()
        self._name = f"micro_battle_{self._arena.battles.map.name}"
        self._recorders: list[EpisodeRecorder] = []

    def reset(
        self, *, seed: Any = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin the battles of `options['reset_mask']`, or all; `seed`: None or one for each."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        seeds = [None] * self.num_envs if seed is None else list(seed)
        index = np.flatnonzero(mask).tolist()
        self._cut_films(index)
        self._arena.reset(index, [np.random.default_rng(seeds[i]) for i in index])
        return self._arena.observe(), {}

    def step(
        self, actions: np.ndarray, index: np.ndarray | None = None
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act in the battles `index`, None: in all; the others stand still. Actions are (N, A)."""
        index = np.arange(self.num_envs) if index is None else index
        self._film(index[self._arena.battles.state["steps"][index] == 0].tolist())
        found, outcome, cut = self._arena.step(np.asarray(actions)[index], index)
        reward, terminated = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=bool)
        truncated = terminated.copy()
        reward[index], terminated[index], truncated[index] = found, outcome.over, cut
        ended = index[outcome.over | cut].tolist()
        won = dict(zip(index.tolist(), outcome.won.tolist(), strict=True))
        infos: dict[str, Any] = {}
        for i in ended:
            infos = self._add_info(infos, self._arena.last_info(won[i], i), i)
        self._film(index.tolist())
        self._cut_films(ended)
        return self._arena.observe(), reward, terminated, truncated, infos

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        """Save all battles from their next reset on, in this directory or one for each."""
        paths = [replay_path] * self.num_envs if isinstance(replay_path, str) else replay_path
        self._recorders = [EpisodeRecorder(path, self._name) for path in paths]

    def _film(self, index: list[int]) -> None:
        if self._recorders:
            for i in index:
                self._recorders[i].add(View(self._arena, i))

    def _cut_films(self, index: Sequence[int]) -> None:
        if self._recorders:
            for i in index:
                self._recorders[i].end_episode()

    def close_extras(self, **kwargs: Any) -> None:
        self._cut_films(range(self.num_envs))

    def render(self) -> tuple[np.ndarray, ...]:
        return tuple(picture(self._arena.battles, i) for i in range(self.num_envs))
