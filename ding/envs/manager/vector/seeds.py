"""Seeds and random actions of the single envs of a vector env."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from ding.envs.base_env import BaseEnv
from ding.envs.manager.slot import seed_after


class EnvSeeds:
    """What each env would draw if it were alone; the envs themselves are never made."""

    def __init__(self, envs: Sequence[BaseEnv], action_space: Any) -> None:
        self._envs = list(envs)
        self._spaces = [deepcopy(action_space) for _ in envs]

    def set(self, i: int, seed: int, *, dynamic: bool | None, renewals: int) -> None:
        if renewals:
            seed = seed_after(seed, renewals)
        self._envs[i].seed(seed) if dynamic is None else self._envs[i].seed(seed, dynamic)
        self._spaces[i].seed(seed)

    def next(self, ids: Iterable[int]) -> list[int | None]:
        """Seeds of the coming episodes; None where none was ever set."""
        return [self._envs[i]._next_seed() for i in ids]

    def random_action(self, i: int) -> Any:
        return self._spaces[i].sample()
