"""Nim with a reward on the way, and players whose moves are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs import BaseEnvManager, BaseEnvTimestep
from ding.envs.two_player import TwoPlayerEnv
from ding.policy import CollectMode
from ding.utils.batch import ByEnv, stacked_of


class Nim(TwoPlayerEnv):
    """Take one to three of `sticks`; whoever takes the last one wins."""

    n_action, obs_shape = 3, (2,)
    sticks = 5

    def initial(self) -> int:
        return self.sticks

    def legal(self, state: int) -> np.ndarray:
        return np.arange(1, 4) <= state

    def play(self, state: int, action: int, player: int) -> int:
        return state - action - 1

    def winner(self, state: int, player: int) -> int | None:
        return player if state == 0 else None

    def seen(self, state: int, player: int) -> list[int]:
        return [state, player]


class PayingNim(Nim):
    """Whoever moves gets 10, the other one gets as much as sticks are left."""

    def step(self, action: Any) -> BaseEnvTimestep:
        mover = self._player
        obs, reward, done, info = super().step(action)
        reward[mover] += 10
        reward[1 - mover] += self._state
        return BaseEnvTimestep(obs, reward, done, info)


class Endless(Nim):
    """Nobody ever wins."""

    def play(self, state: int, action: int, player: int) -> int:
        return state


def games(n: int = 1, env: type[TwoPlayerEnv] = Nim, **cfg: Any) -> BaseEnvManager:
    manager = BaseEnvManager([lambda: env(cfg) for _ in range(n)], {})
    manager.seed(0)
    return manager


def first_legal(obs: Any, rng: Any) -> int:
    return int(np.flatnonzero(obs["action_mask"])[0])


class Takes:
    """Acting mode that always makes this move; notes who asked, and what was reset."""

    def __init__(self, move: int = 0) -> None:
        self.move = move
        self.asked: list[list[int]] = []

    def forward(self, data: Mapping[int, Any], **kwargs: Any) -> ByEnv:
        seats, _ = stacked_of(data)
        self.asked.append(seats.tolist())
        return ByEnv(seats, {"action": np.full(len(seats), self.move), "eps": np.zeros(len(seats))})

    def reset(self, data_id: Sequence[int] | None = None) -> None: ...

    def get_attribute(self, name: str) -> Any:
        raise NotImplementedError


def learning(move: int = 0, **attributes: Any) -> CollectMode:
    """Collect mode that makes this move and gives its steps as they are."""
    takes = Takes(move)

    def attribute(name: str) -> Any:
        if name in attributes:
            return attributes[name]
        raise NotImplementedError

    return CollectMode(
        takes.forward,
        lambda obs, output, step: {
            "obs": obs["obs"],
            "action": output["action"],
            "reward": step.reward,
            "next_obs": step.obs["obs"],
        },
        lambda rows: rows,
        takes.reset,
        attribute,
        lambda name, value: None,
        dict,
        lambda state: None,
    )
