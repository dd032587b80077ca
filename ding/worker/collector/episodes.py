"""Returns and lengths of the episodes that are collected from."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from ding.envs.base_env import VecStep


def scalar_reward(reward: np.ndarray) -> np.ndarray:
    """(N,): the sum over each env's reward where it is a vector."""
    return reward if reward.ndim == 1 else reward.reshape(len(reward), -1).sum(axis=1)


class EpisodeLog:
    """The episodes that the envs are in, and the last ones that ended."""

    def __init__(self, kept: int = 100) -> None:
        self.count = 0
        """Episodes that ended."""
        self._recent: deque[tuple[float, int]] = deque(maxlen=kept)
        self.begin(0)

    def begin(self, env_num: int) -> None:
        """All of so many envs are at the start of an episode."""
        self._return = np.zeros(env_num, dtype=np.float64)
        self.length = np.zeros(env_num, dtype=np.int64)
        """Steps of each env's episode so far."""

    def begin_in(self, env_id: Any) -> None:
        self._return[env_id] = 0.0
        self.length[env_id] = 0

    def add(self, step: VecStep, index: Any) -> list[int]:
        """Count one step of each env at `index`; the ids of those whose episodes are over."""
        self._return[index] += scalar_reward(step.reward)
        self.length[index] += 1
        if True not in step.done.tolist():
            return []
        ended = step.env_id[step.done]
        for i in ended.tolist():
            self._recent.append((float(self._return[i]), int(self.length[i])))
        self.count += len(ended)
        self.begin_in(ended)
        return ended.tolist()

    @property
    def mean_return(self) -> float | None:
        return float(np.mean([r for r, _ in self._recent])) if self._recent else None

    def summary(self) -> dict[str, float]:
        """Of the last episodes; there must be one."""
        returns, lengths = zip(*self._recent, strict=True)
        return {
            "reward_mean": float(np.mean(returns)),
            "reward_std": float(np.std(returns)),
            "reward_max": float(np.max(returns)),
            "reward_min": float(np.min(returns)),
            "avg_episode_length": float(np.mean(lengths)),
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "episode_count": self.count,
            "recent": [list(pair) for pair in self._recent],
            "return": self._return.copy(),
            "length": self.length.copy(),
        }

    def load_state_dict(self, state: dict[str, Any], running: bool) -> None:
        """`running`: the envs go on with their episodes, too."""
        self.count = state["episode_count"]
        self._recent.clear()
        self._recent.extend((r, n) for r, n in state["recent"])
        if running:
            self._return[:], self.length[:] = state["return"], state["length"]
