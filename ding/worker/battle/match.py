"""Match: a list of games between named players, played to their ends in the envs of a manager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ding.envs.base_env import VecStep
from ding.envs.two_player import DRAWS
from ding.utils.batch import take
from ding.worker.battle.games import SEATS, Game, Table, rewards_of
from ding.worker.collector.waiting_envs import await_obs

Pair = Sequence[str]
"""Names of the players at the first and the second seat."""
Ended = Callable[[Game, Any], None]
"""Is told of each game that ends, with what both seats see then."""


class Match:
    """Games of these pairs in their order; one env plays them one after the other.

    A game of more than `max_steps` steps is cut off as a draw.
    """

    def __init__(
        self,
        env: Any,
        table: Table,
        pairs: Sequence[Pair],
        *,
        ended: Ended = lambda game, seen: None,
        max_steps: int | None = None,
    ) -> None:
        self._env, self._table, self._pairs = env, table, pairs
        self._ended, self._max_steps = ended, max_steps
        self._numbers = {player.name: k for k, player in enumerate(table.players)}
        self._games: dict[int, Game] = {}
        # Place in the list of the game that each env plays.
        self._place = np.arange(env.env_num)
        self._active = self._place < len(pairs)
        self._dealt = min(len(pairs), len(self._place))
        self._returns = np.zeros((env.env_num, SEATS))
        self._steps = np.zeros(env.env_num, dtype=np.int64)

    def play(self) -> list[Game]:
        """The games, in the order of the pairs; the envs have just been reset."""
        self._table.reset()
        for env_id in range(self._dealt):
            self._seat(env_id)
        while len(self._games) < len(self._pairs):
            obs = await_obs(self._env, self._active)
            answer = self._table.forward(obs)
            step = self._env.step(type(obs)(answer.ids, answer.stacked["action"])).stacked
            self._returns[step.env_id] += rewards_of(step)
            self._steps[step.env_id] += 1
            for k in np.flatnonzero(self._is_over(step)).tolist():
                self._end(step, k)
        return [self._games[k] for k in range(len(self._pairs))]

    def _is_over(self, step: VecStep) -> np.ndarray:
        over = step.done | step.abnormal
        if self._max_steps is not None:
            over = over | (self._steps[step.env_id] >= self._max_steps)
        return np.asarray(over)

    def _end(self, step: VecStep, k: int) -> None:
        i = int(step.env_id[k])
        self._table.reset([i])
        goes_on = step.abnormal[k] or not step.done[k]
        if goes_on and "error" not in step.info[k]:
            self._env.reset({i: None})
        if not step.abnormal[k]:  # else the game is played again
            game = self._game_of(step, k)
            self._games[int(self._place[i])] = game
            self._ended(game, take(step.obs, k))
            self._deal(i)
        self._returns[i], self._steps[i] = 0.0, 0

    def _game_of(self, step: VecStep, k: int) -> Game:
        i, info = int(step.env_id[k]), step.info[k]
        steps = int(self._steps[i])
        if not step.done[k]:
            reason = f"cut off after {steps} moves"
            info = {"result": (DRAWS, DRAWS), "reason": reason}
        return self._table.game_of(i, info, self._returns[i], steps)

    def _deal(self, env_id: int) -> None:
        self._active[env_id] = self._dealt < len(self._pairs)
        if self._active[env_id]:
            self._place[env_id] = self._dealt
            self._seat(env_id)
            self._dealt += 1

    def _seat(self, env_id: int) -> None:
        names = self._pairs[self._place[env_id]]
        self._table.seating[env_id] = [self._numbers[name] for name in names]
