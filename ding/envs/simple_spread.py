"""simple_spread of MPE in NumPy: the numbers of `mpe2`, bit for bit, in a sixth of the time.

The rules are those of Lowe et al. 2017, https://arxiv.org/abs/1706.02275, as `mpe2` has them; every
expression keeps its order of operations. A agents, who are discs, and as many landmarks.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding

_DT, _DAMPING, _SENSITIVITY = 0.1, 0.25, 5.0
_CONTACT_FORCE, _CONTACT_MARGIN = 1e2, 1e-3
_APART = 0.15 + 0.15
"""Distance of the centres of two agents that touch."""
_N_SAID = 2
"""Numbers that each agent sees of what another one says: zeros, nobody speaks."""
_PUSH = np.array([[0, 0], [-1, 0], [1, 0], [0, -1], [0, 1]], dtype=float) * _SENSITIVITY


class SimpleSpread:
    """PettingZoo's parallel interface; `local_ratio`: share of the agents' own rewards."""

    def __init__(
        self,
        N: int = 3,  # noqa: N803 (the name that mpe2 has for it)
        local_ratio: float = 0.5,
        max_cycles: int = 25,
        continuous_actions: bool = False,
    ) -> None:
        self.possible_agents = [f"agent_{i}" for i in range(N)]
        self._local_ratio, self._limit = local_ratio, max_cycles
        self._continuous = continuous_actions
        self._rng, _ = seeding.np_random()
        width = 4 + 2 * N + (2 + _N_SAID) * (N - 1)
        self._obs_space = gym.spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self._action_space: gym.Space[Any] = gym.spaces.Discrete(len(_PUSH))
        if continuous_actions:
            self._action_space = gym.spaces.Box(0, 1, (len(_PUSH),), np.float32)
        self._others = np.array([[j for j in range(N) if j != i] for i in range(N)], dtype=int)
        self._rows = np.arange(N)[:, None]
        self._alone = np.eye(N)

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self._obs_space

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._action_space

    def reset(
        self, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        if seed is not None:
            self._rng, _ = seeding.np_random(seed)
        count = len(self.possible_agents)
        places = self._rng.uniform(-1, 1, (2 * count, 2))
        self._place, self._landmarks = places[:count], places[count:]
        self._velocity, self._steps = np.zeros((count, 2)), 0
        return self._seen(self._place[:, None] - self._place), self._each({})

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        self._move(np.array([actions[agent] for agent in self.possible_agents]))
        self._steps += 1
        between = self._place[:, None] - self._place
        rewards = dict(zip(self.possible_agents, self._rewards(between), strict=True))
        cut = self._each(self._steps >= self._limit)
        return self._seen(between), rewards, self._each(False), cut, self._each({})

    def _each(self, value: Any) -> dict[str, Any]:
        return dict.fromkeys(self.possible_agents, value)

    def _move(self, actions: np.ndarray) -> None:
        """Forces of the agents and of those they touch, then Euler's step."""
        force = self._pushes(actions)
        between = self._place[:, None] - self._place  # (A, A, 2): from the second to the first
        distance = np.sqrt(np.square(between).sum(-1)) + self._alone
        depth = np.logaddexp(0, -(distance - _APART) / _CONTACT_MARGIN) * _CONTACT_MARGIN
        contact = _CONTACT_FORCE * between / distance[..., None] * depth[..., None]
        for other in range(len(force)):
            force = contact[:, other] + force
        self._place += self._velocity * _DT
        self._velocity = self._velocity * (1 - _DAMPING)
        self._velocity += force * _DT

    def _pushes(self, actions: np.ndarray) -> np.ndarray:
        if not self._continuous:
            return _PUSH[actions]
        strength = np.clip(actions, 0, 1)
        pairs = strength[:, [2, 4]] - strength[:, [1, 3]]
        return pairs.astype(float) * _SENSITIVITY

    def _rewards(self, between: np.ndarray) -> list[float]:
        """Own ones for collisions, and that of all for the distances of landmarks."""
        to_landmarks = np.sqrt(np.square(self._place[:, None] - self._landmarks).sum(-1))
        of_all = 0.0
        for nearest in to_landmarks.min(axis=0).tolist():
            of_all -= nearest
        touches = np.sqrt(np.square(between).sum(-1)) + self._alone < _APART
        ratio = self._local_ratio
        return [of_all * (1 - ratio) - hits * ratio for hits in touches.sum(axis=1).tolist()]

    def _seen(self, between: np.ndarray) -> dict[str, np.ndarray]:
        count = len(self.possible_agents)
        landmarks = (self._landmarks - self._place[:, None]).reshape(count, -1)
        others = -between[self._rows, self._others].reshape(count, -1)
        said = np.zeros((count, _N_SAID * (count - 1)))
        parts = [self._velocity, self._place, landmarks, others, said]
        return dict(
            zip(self.possible_agents, np.concatenate(parts, axis=1, dtype=np.float32), strict=True)
        )
