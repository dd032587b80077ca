"""Players by `module:function`, and a game without an end, for the command line."""

from __future__ import annotations

from typing import Any

import numpy as np

from ding.envs.two_player import TwoPlayerEnv


def first_free(obs: Any, rng: np.random.Generator) -> int:
    return int(np.flatnonzero(obs["action_mask"])[0])


def illegal(obs: Any, rng: np.random.Generator) -> int:
    return 99


def raising(obs: Any, rng: np.random.Generator) -> int:
    raise ValueError("no idea")


class Endless(TwoPlayerEnv):
    n_action, obs_shape = 2, (1,)

    def initial(self) -> int:
        return 0

    def legal(self, state: int) -> list[bool]:
        return [True, True]

    def play(self, state: int, action: int, player: int) -> int:
        return state

    def winner(self, state: int, player: int) -> None:
        return None

    def seen(self, state: int, player: int) -> list[int]:
        return [state]
