"""Games of slime volley side by side, for the env manager 'gym_vector'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from ding.envs.two_player import SeatsSpace
from ding.envs.video import EpisodeRecorder
from dizoo.slime_volley.envs.courts import Courts
from dizoo.slime_volley.envs.render import picture
from dizoo.slime_volley.envs.score import METADATA, forfeit_info, last_info
from dizoo.slime_volley.envs.volley import MOVES


class SlimeVolleyVector(VectorEnv[Any, Any, Any]):
    """`count` games as a vector env that resets games when it is told to."""

    def __init__(self, cfg: Mapping[str, Any], count: int) -> None:
        self.metadata = {**METADATA, "autoreset_mode": AutoresetMode.DISABLED}
        self._lives, self._most = cfg["lives"], cfg["frames"]
        self._repeat = cfg["action_repeat"]
        self.num_envs, self._courts = count, Courts(count)
        self._recorders: list[EpisodeRecorder] = []
        self._points = np.zeros((count, 2), dtype=np.int64)
        self._frames = np.zeros(count, dtype=np.int64)
        self.single_observation_space = gym.spaces.Box(-np.inf, np.inf, (2, 12), np.float32)
        self.single_action_space = SeatsSpace(gym.spaces.Discrete(len(MOVES)), 2)

    def reset(
        self, *, seed: Any = None, options: Mapping[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin the games of `options['reset_mask']`, or all; `seed`: None or one for each."""
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, dtype=bool))
        seeds = [None] * self.num_envs if seed is None else list(seed)
        index = np.flatnonzero(mask)
        self._end_films(index)
        self._courts.reset(index.tolist(), [np.random.default_rng(seeds[i]) for i in index])
        self._points[index], self._frames[index] = 0, 0
        return self._courts.seen(), {}

    def step(
        self, actions: np.ndarray, index: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act in the games `index`, None: in all; the others stand still. (N, 2) actions."""
        index = np.arange(self.num_envs) if index is None else index
        actions, before = np.asarray(actions), self._points.copy()
        legal = ((actions >= 0) & (actions < len(MOVES)))[index].all(axis=1)
        over = np.zeros(self.num_envs, dtype=bool)
        plays, forfeited = index[legal], index[~legal].tolist()
        for _ in range(self._repeat):
            self._play(actions[plays], plays)
            over[plays] = self._ended(plays)
            plays = plays[~over[plays]]
        gained = self._points - before
        reward = (gained - gained[:, ::-1]).astype(np.float32)
        cut = over & (self._points.max(axis=1) < self._lives)
        infos: dict[str, Any] = {}
        for i in np.flatnonzero(over).tolist():
            infos = self._add_info(infos, last_info(self._points[i].tolist()), i)
        for i in forfeited:
            info = forfeit_info(actions[i].tolist(), self._lives)
            reward[i], over[i] = info["eval_episode_return"], True
            infos = self._add_info(infos, info, i)
        self._end_films(np.flatnonzero(over))
        return self._courts.seen(), reward, over & ~cut, cut, infos

    def _play(self, moves: np.ndarray, index: np.ndarray) -> None:
        """One frame of these games."""
        if not index.size:
            return
        winner = self._courts.step(moves, index)
        self._frames[index] += 1
        won = np.flatnonzero(winner >= 0)
        self._points[index[won], winner[won]] += 1
        if self._recorders:
            for i in index.tolist():
                self._recorders[i].add(_View(self, i))

    def _ended(self, index: np.ndarray) -> np.ndarray:
        decided = self._points[index].max(axis=1) >= self._lives
        return decided | (self._frames[index] >= self._most)

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        """Save all games from their next reset on, in this directory or one for each."""
        paths = [replay_path] * self.num_envs if isinstance(replay_path, str) else replay_path
        self._recorders = [EpisodeRecorder(path, "slime_volley") for path in paths]

    def _end_films(self, index: np.ndarray) -> None:
        if self._recorders:
            for i in index.tolist():
                self._recorders[i].end_episode()

    def close_extras(self, **kwargs: Any) -> None:
        self._end_films(np.arange(self.num_envs))

    def render(self) -> tuple[np.ndarray, ...]:
        return tuple(_View(self, i).render() for i in range(self.num_envs))


class _View:
    """One game, as a recorder of videos wants it."""

    metadata = METADATA

    def __init__(self, games: SlimeVolleyVector, i: int) -> None:
        self._games, self._i = games, i

    def render(self) -> np.ndarray:
        return picture(self._games._courts.court(self._i), self._games._points[self._i].tolist())
