"""Hindsight for whole episodes by hand, with the established names.

Runs relabel when they draw (`policy.other.her`); this is for loops that users write themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ding.policy.config import HER_STRATEGIES, at_least, one_of
from ding.utils.errors import ConfigError
from ding.utils.seed import new_generator

Step = dict[str, Any]


class HerRewardModel:
    """Episodes with goals that they reached; `her_replay_k` of each, the original not among them.

    A step ends its episode where the new goal is reached, and is then the last one.
    """

    def __init__(self, cfg: Mapping[str, Any], cuda: bool = False) -> None:
        if "her_strategy" not in cfg:
            raise ConfigError(f"her_strategy is missing; give one of {HER_STRATEGIES}")
        self._strategy = cfg["her_strategy"]
        self._replay_k = cfg.get("her_replay_k", 1)
        one_of("her_strategy", self._strategy, HER_STRATEGIES)
        at_least("her_replay_k", self._replay_k, 0)
        self._episode_size = cfg.get("episode_size")
        self._sample_per_episode = cfg.get("sample_per_episode")
        self._device = torch.device("cuda" if cuda else "cpu")
        self._rng = new_generator()

    @property
    def episode_size(self) -> int | None:
        return self._episode_size

    @property
    def sample_per_episode(self) -> int | None:
        return self._sample_per_episode

    def estimate(
        self,
        episode: Sequence[Step],
        merge_func: Callable[[Any, Any], Any] | None = None,
        split_func: Callable[[Any], tuple[Any, Any, Any]] | None = None,
        goal_reward_func: Callable[[Any, Any], Any] | None = None,
    ) -> list[list[Step]]:
        """Episodes, or `sample_per_episode` steps of them, with other goals, rewards and ends.

        `split_func` gives state, desired and achieved goal of an observation.
        """
        functions = (
            merge_func or _merged,
            split_func or _halves,
            goal_reward_func or _equal,
        )
        return [self._relabelled(episode, *functions) for _ in range(self._replay_k)]

    def _relabelled(
        self, episode: Sequence[Step], merge: Any, split: Any, reward: Any
    ) -> list[Step]:
        rows: Sequence[int] = range(len(episode))
        if self._sample_per_episode is not None:
            rows = self._rng.integers(len(episode), size=self._sample_per_episode).tolist()
        steps = []
        for row in rows:
            goal = split(episode[self._goal_row(row, len(episode))]["next_obs"])[2]
            achieved = split(episode[row]["next_obs"])[2]
            gained = reward(achieved, goal)
            reached = bool(torch.as_tensor(gained >= reward(goal, goal)).all())
            replaced = {
                key: merge(split(episode[row][key])[0], goal) for key in ("obs", "next_obs")
            }
            gained = torch.as_tensor(gained).reshape(np.shape(episode[row]["reward"]))
            steps.append(
                {**episode[row], **self._placed(replaced), "reward": gained, "done": reached}
            )
        return steps

    def _goal_row(self, row: int, n: int) -> int:
        if self._strategy == "final":
            return n - 1
        first = row if self._strategy == "future" else 0
        return int(self._rng.integers(first, n))

    def _placed(self, columns: Step) -> Step:
        return {
            key: value.to(self._device) if isinstance(value, Tensor) else value
            for key, value in columns.items()
        }


def _halves(obs: Any) -> tuple[Any, Any, Any]:
    half = obs.shape[-1] // 2
    return obs[:half], obs[half:], obs[:half]


def _merged(state: Any, goal: Any) -> Any:
    return torch.cat([torch.as_tensor(state), torch.as_tensor(goal)])


def _equal(achieved: Any, desired: Any) -> Tensor:
    same = bool((torch.as_tensor(achieved) == torch.as_tensor(desired)).all())
    return torch.tensor([float(same)])
