"""Episode collector: whole episodes, a given number of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ding.envs.base_env import VecStep
from ding.utils.batch import Rows, concat
from ding.worker.collector.base import ISerialCollector


class EpisodeCollector(ISerialCollector):
    """`collect(n_episode)` begins exactly that many episodes and plays them all to their end.

    So long episodes are as likely as short ones; envs that have nothing left to begin stand still.
    """

    config: ClassVar[dict[str, Any]] = dict(
        type="episode",
        import_names=[],
        # Accepted for older configs: observations are always copied into columns.
        deepcopy_obs=False,
        # Accepted for older configs: samples are stacked columns already.
        transform_obs=False,
        # Train iterations between two entries in the log.
        collect_print_freq=100,
        # Return one flat list of training samples instead of a list of episodes.
        get_train_sample=False,
        # Hand each episode to the env's `reward_shaping` first.
        reward_shaping=False,
    )

    _some_stand_still = True

    def collect(
        self,
        n_episode: int | None = None,
        train_iter: int = 0,
        policy_kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """A list of `n_episode` episodes, each a list of transitions."""
        self._check_complete()
        n_episode = self._wanted(n_episode)
        self._begin_anew()
        left = n_episode - self._env_num
        active = np.ones(self._env_num, dtype=bool)
        episodes: list[Any] = []

        def enough(step: VecStep) -> bool:
            nonlocal left
            for i in step.env_id[step.done].tolist():
                episodes.append(self._take_episode(i, train_iter))
                active[i] = left > 0
                left -= int(active[i])
            return len(episodes) >= n_episode

        self._advance(enough, policy_kwargs or {}, active)
        self._log_progress(train_iter)
        if self._cfg.get_train_sample:
            return _joined(episodes)
        return episodes

    def _wanted(self, n_episode: int | None) -> int:
        n_episode = self._recorder.needs.n_episode if n_episode is None else n_episode
        if n_episode is None:
            raise RuntimeError("how many episodes? pass n_episode, or set policy.collect.n_episode")
        if n_episode < self._env_num:
            raise ValueError(
                f"n_episode = {n_episode} is less than the {self._env_num} envs; use fewer envs"
            )
        return n_episode

    def _begin_anew(self) -> None:
        """Every env starts at the first step of an episode."""
        self._drain()
        begun = np.flatnonzero(self._episodes.length > 0)
        if len(begun):
            self._env.reset(dict.fromkeys(begun.tolist()))
            self._episodes.begin_in(begun.tolist())
        self._store.clear()

    def _take_episode(self, env_id: int, train_iter: int) -> Any:
        steps = self._store.flat(np.array([env_id]))
        self._store.clear(env_id)
        steps["collect_iter"] = np.full(len(steps["done"]), train_iter, dtype=np.int64)
        episode: Any = Rows(steps)
        if self._cfg.reward_shaping:
            episode = self._env.reward_shaping(env_id, episode)
        return self._policy.get_train_sample(episode) if self._cfg.get_train_sample else episode


def _joined(episodes: list[Any]) -> list[Any]:
    """Samples of all episodes in one list: columns stay columns, a policy's own rows stay rows."""
    if all(isinstance(samples, Rows) for samples in episodes):
        return Rows(concat([samples.columns for samples in episodes if len(samples)] or [{}]))
    return [sample for samples in episodes for sample in samples]
