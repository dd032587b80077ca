"""Managers whose envs answer in another order than they were asked, in one process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ding.envs import BaseEnvManager
from ding.envs.base_env import StepByEnv
from ding.utils.batch import ByEnv, stack, stacked_of, take
from worker.fakes import StepLogEnv


class ScriptedManager(BaseEnvManager):
    """A random part of the envs that were sent an action steps in each `recv`.

    After an episode an env is away for `away` calls of `recv`, as if its reset took that long.
    """

    overlaps = True

    def __init__(
        self, env_fn: Any, cfg: Any = None, *, seed: int = 0, away: int = 2, single: bool = False
    ) -> None:
        self._rng, self._away_for, self._single = np.random.default_rng(seed), away, single
        self._sent: dict[int, Any] = {}
        self._away: dict[int, int] = {}
        self._guard = threading.RLock()
        self.received_in: set[str] = set()
        super().__init__(env_fn, cfg)

    def reset(self, reset_param: Any = None) -> None:
        with self._guard:
            for i in range(self.env_num) if reset_param is None else reset_param:
                self._sent.pop(i, None)
                self._away.pop(i, None)
            super().reset(reset_param)

    def send(self, actions: Mapping[int, Any]) -> None:
        with self._guard:
            ids, stacked = stacked_of(actions)
            for k, i in enumerate(ids.tolist()):
                if i not in self._waiting():
                    raise RuntimeError(f"env {i} does not wait for an action")
                self._sent[i] = take(stacked, k)

    def recv(self, timeout: float | None = None) -> StepByEnv:
        with self._guard:
            self.received_in.add(threading.current_thread().name)
            self._away = {i: n - 1 for i, n in self._away.items() if n > 1}
            ids = np.array(sorted(self._sent), dtype=np.int64)
            if len(ids) and not (self._single and timeout == 0.0):
                n = 1 if self._single else int(self._rng.integers(1, len(ids) + 1))
                return self._answer(self._rng.permutation(ids)[:n])
            return StepByEnv(ids[:0], None)

    def _answer(self, ids: np.ndarray) -> StepByEnv:
        actions = stack([self._sent.pop(i) for i in ids.tolist()])
        steps = super().step(ByEnv(ids, actions))
        for i in ids[steps.stacked.done].tolist() if self._away_for else ():
            self._away[i] = self._away_for
        return steps

    def _waiting(self) -> list[int]:
        run = super().ready_obs_id
        return [i for i in run if i not in self._sent and i not in self._away]

    @property
    def waiting_obs(self) -> ByEnv:
        with self._guard:
            ids = np.array(self._waiting(), dtype=np.int64)
            return ByEnv(ids, take(self._obs, ids))

    @property
    def ready_obs(self) -> ByEnv:
        return self.waiting_obs

    @property
    def in_flight(self) -> int:
        return len(self._sent)


class CountingManager(ScriptedManager):
    """Says how many envs wait: steps may then be stored after the next action."""

    @property
    def waiting_num(self) -> int:
        return len(self.waiting_obs)


class OutOfTurnManager(ScriptedManager):
    """Has only `step`; it answers for whoever is ready, asked now or earlier."""

    overlaps = False

    def __init__(self, env_fn: Any, cfg: Any = None, **options: Any) -> None:
        super().__init__(env_fn, cfg, **{**options, "away": 0})

    def step(self, actions: Mapping[int, Any]) -> StepByEnv:
        self.send(actions)
        return self.recv()


def scripted(n: int, kind: Any = ScriptedManager, cfg: Any = None, **kwargs: Any) -> Any:
    options = {key: kwargs.pop(key) for key in ("seed", "away", "single") if key in kwargs}
    lengths = kwargs.pop("lengths", (4, 1, 6, 3))
    makers = [
        partial(StepLogEnv, i, lengths=tuple(length + i for length in lengths), **kwargs)
        for i in range(n)
    ]
    return kind(makers, cfg or {}, **options)
