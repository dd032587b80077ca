"""Games of one joint move: prisoner's dilemma, a zero-sum game, rock-paper-scissors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from ding.envs import BaseEnv, BaseEnvTimestep
from ding.envs.two_player import LOSSES, WINS, SeatsSpace, results_of
from ding.utils.errors import ConfigError, nearest

TABLES: dict[str, Any] = {
    # What the first player gets; the second one's table is the transpose ...
    "prisoner_dilemma": [[-1, -20], [0, -10]],
    # ... or in games of zero sum the negative of it.
    "zero_sum": [[3, -2], [-2, 1]],
    "rock_paper_scissors": [[0, -1, 1], [1, 0, -1], [-1, 1, 0]],
}
EQUILIBRIA: dict[str, list[float]] = {
    "prisoner_dilemma": [0.0, 1.0],
    "zero_sum": [0.375, 0.625],
    "rock_paper_scissors": [1 / 3, 1 / 3, 1 / 3],
}
"""Mixed strategy of both players in the one equilibrium."""


class GameEnv(BaseEnv):
    """Both choose at once; each sees only which player it is."""

    config: ClassVar[dict[str, Any]] = {
        # 'prisoner_dilemma', 'zero_sum' or 'rock_paper_scissors'.
        "game_type": "prisoner_dilemma",
    }

    def __init__(self, cfg: Mapping[str, Any] | None = None) -> None:
        super().__init__({**self.config, **(cfg or {})})
        game = self._cfg["game_type"]
        if game not in TABLES:
            raise ConfigError(f"env.game_type = '{game}'{nearest(game, TABLES)}")
        first = np.array(TABLES[game], dtype=np.float32)
        second = first.T if game == "prisoner_dilemma" else -first
        self._payoffs = np.stack([first, second], axis=-1)  # (first, second, player)
        self._observation_space = gym.spaces.Box(0, 1, (2, 2), dtype=np.float32)
        self._action_space = SeatsSpace(gym.spaces.Discrete(len(first)), 2)
        self._reward_space = gym.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float32)

    def reset(self, **kwargs: Any) -> np.ndarray:
        self._next_seed()
        return np.eye(2, dtype=np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        moves = [int(x) for x in np.reshape(action, 2)]
        legal = [0 <= move < len(self._payoffs) for move in moves]
        if not all(legal):
            return self._forfeited(legal.index(False), moves)
        reward = self._payoffs[tuple(moves)].copy()
        info = {"eval_episode_return": reward.copy(), "result": results_of(reward)}
        return BaseEnvTimestep(np.eye(2, dtype=np.float32), reward, True, info)

    def _forfeited(self, loser: int, moves: list[int]) -> BaseEnvTimestep:
        """The loser gets the least that the table has for it, the other one the most."""
        reward = self._payoffs.max(axis=(0, 1))
        reward[loser] = self._payoffs[..., loser].min()
        result = [LOSSES, WINS] if loser == 0 else [WINS, LOSSES]
        reason = f"move {moves[loser]} of player {loser} is illegal"
        info = {"eval_episode_return": reward.copy(), "result": result}
        info |= {"forfeit": loser, "reason": reason}
        return BaseEnvTimestep(np.eye(2, dtype=np.float32), reward, True, info)

    def close(self) -> None:
        """Nothing is open."""

    def __repr__(self) -> str:
        return f"GameEnv({self._cfg['game_type']})"
