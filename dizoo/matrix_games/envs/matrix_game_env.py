"""Cooperative games of two agents whose payoffs are a table; both get the same reward.

'climbing' and 'penalty': Claus and Boutilier 1998. 'two_step': Rashid et al. 2018 (section 5 of
https://arxiv.org/abs/1803.11485): the first agent's first action leads to a table of 7, or to
((0, 1), (1, 8)). 'qtran': table 1 of Son et al. 2019, https://arxiv.org/abs/1905.05408.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import ParallelAgentsEnv
from ding.utils.errors import ConfigError, nearest

TABLES: dict[str, Any] = {
    "climbing": [[11, -30, 0], [-30, 7, 6], [0, 0, 5]],
    "qtran": [[8, -12, -12], [-12, 0, 0], [-12, 0, 0]],
}
_TWO_STEP = ([[7, 7], [7, 7]], [[0, 1], [1, 8]])
GAMES = ("climbing", "penalty", "qtran", "two_step")


class MatrixGame:
    """One table, played `repeats` times over; nothing is seen but that it goes on."""

    def __init__(self, table: Any, repeats: int = 1) -> None:
        self._table = np.array(table, dtype=float)
        self._repeats, self._played = repeats, 0
        self.possible_agents = ["first", "second"]

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Box(0, 1, (1,), dtype=np.float32)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Discrete(len(self._table))

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self._played = 0
        return self._seen(), {}

    def step(self, actions: Mapping[str, int]) -> tuple[dict[str, Any], ...]:
        reward = self._reward(*actions.values())
        self._played += 1
        over = self._played == self._repeats
        return (
            self._seen(),
            dict.fromkeys(self.possible_agents, reward),
            dict.fromkeys(self.possible_agents, over),
            dict.fromkeys(self.possible_agents, False),
            {},
        )

    def _reward(self, first: int, second: int) -> float:
        return float(self._table[first, second])

    def _seen(self) -> dict[str, Any]:
        return {agent: np.ones(1, dtype=np.float32) for agent in self.possible_agents}


class TwoStepGame(MatrixGame):
    """The first step picks the table of the second; agents see which one it is."""

    def __init__(self) -> None:
        super().__init__(_TWO_STEP[0], repeats=2)
        self._place = 0

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Box(0, 1, (3,), dtype=np.float32)

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self._place = 0
        return super().reset(seed)

    def _reward(self, first: int, second: int) -> float:
        if self._place:
            return float(_TWO_STEP[self._place - 1][first][second])
        self._place = 1 + first
        return 0.0

    def _seen(self) -> dict[str, Any]:
        here = np.eye(3, dtype=np.float32)[self._place]
        return {agent: here.copy() for agent in self.possible_agents}


class MatrixGameEnv(ParallelAgentsEnv):
    config: ClassVar[dict[str, Any]] = {
        **ParallelAgentsEnv.config,
        "reward": "mean",  # both have the same
        "obs_agent_id": True,
        # 'climbing', 'penalty', 'qtran' or 'two_step'.
        "game": "two_step",
        # What 'penalty' pays where both aim at different tens.
        "penalty": -25,
        # Times that a game of one step is played in an episode.
        "repeats": 1,
    }

    def _new_env(self) -> MatrixGame:
        game, penalty = self._cfg["game"], self._cfg["penalty"]
        if game not in GAMES:
            raise ConfigError(f"env.game = '{game}'{nearest(game, GAMES)}")
        if game == "two_step":
            return TwoStepGame()
        tables = {**TABLES, "penalty": [[penalty, 0, 10], [0, 2, 0], [10, 0, penalty]]}
        return MatrixGame(tables[game], self._cfg["repeats"])

    def __repr__(self) -> str:
        return f"MatrixGameEnv({self._cfg['game']})"
