"""A CartPole that breaks in every way that a worker process can break, and the log of it."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ding.envs import BaseEnvTimestep
from dizoo.classic_control.cartpole.envs.cartpole_env import CartPoleEnv

COUNTED_AS = {
    "raise": "raised",
    "hang": "timeout",
    "hang_gil": "timeout",
    "nan": "nan",
    "kill": "died",
    "kill_later": "died",
}
"""What is injected, and the kind under which the manager has to count it."""
_FOREVER = 3600
_LATEST_KILL = 0.05
_RECORD = 24


class InjectedError(RuntimeError):
    """Raised on purpose."""


class FaultLog:
    """A file to which the envs write each fault before they break; full after `limit` faults."""

    def __init__(self, path: str | Path, limit: int) -> None:
        self.path, self.limit = Path(path), limit

    def claim(self, kind: str, env: int) -> bool:
        """Whether this fault may happen; if so it is on record, also if the process then dies."""
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_size >= self.limit * _RECORD:
                return False
            file.write(f"{kind:<15}{env:>8}\n".encode())
            return True

    def records(self) -> list[tuple[str, int]]:
        if not self.path.exists():
            return []
        lines = self.path.read_text().splitlines()
        return [(line[:15].strip(), int(line[15:])) for line in lines]

    @property
    def full(self) -> bool:
        return self.path.exists() and self.path.stat().st_size >= self.limit * _RECORD

    def injected(self) -> Counter[str]:
        """Faults by the kind that the manager counts them as."""
        return Counter(COUNTED_AS[kind] for kind, _ in self.records())


class FaultyCartPole(CartPoleEnv):
    """Breaks once in `gap` steps on average; `cfg` without a `log` gives a sound CartPole."""

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        own = ("log", "limit", "gap", "env", "seed")
        super().__init__({key: value for key, value in cfg.items() if key not in own})
        self._until = -1
        if cfg.get("log"):
            self._log, self._index = FaultLog(cfg["log"], cfg["limit"]), cfg["env"]
            self._gap = cfg["gap"]
            # A new env in the place of a broken one must not break in the same way.
            earlier = sum(env == self._index for _, env in self._log.records())
            self._rng = random.Random(f"{cfg['seed']}/{self._index}/{earlier}")
            self._draw()

    def _draw(self) -> None:
        self._until = 2 + int(self._rng.expovariate(1 / self._gap))
        self._kind = self._rng.choice(list(COUNTED_AS))

    def step(self, action: Any) -> BaseEnvTimestep:
        self._until -= 1
        if self._until == 0:
            if self._log.claim(self._kind, self._index):
                return self._break(self._kind, action)
            self._until = -1  # The log is full: sound from now on.
        return super().step(action)

    def _break(self, kind: str, action: Any) -> BaseEnvTimestep:
        if kind == "raise":
            self._draw()
            raise InjectedError(f"injected into env {self._index}")
        if kind == "hang":
            time.sleep(_FOREVER)
        elif kind == "hang_gil":
            ctypes.PyDLL(None).sleep(_FOREVER)
        elif kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "kill_later":
            # It hits between two steps, in a step or in a reset. Until then nothing else happens.
            delay = self._rng.uniform(0, _LATEST_KILL)
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
            return super().step(action)
        self._draw()
        timestep = super().step(action)
        return timestep._replace(obs=np.full_like(timestep.obs, np.nan))
