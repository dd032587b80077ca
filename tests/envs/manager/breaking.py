"""An env that breaks in every way at a chosen (episode, step)."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from ding.envs import BaseEnvTimestep

from ..counting import CountingEnv


class OddError(Exception):
    """Cannot be pickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
        self.held = lambda: one


class BreakingEnv(CountingEnv):
    """Once a file `mark` exists, the event has happened and does not happen again."""

    def __init__(self, length: int = 3, events: Any = None, mark: str = "") -> None:
        super().__init__(length, events)
        self.mark = mark
        if self.events.get("make") == "raise":
            raise OSError("no display")
        if self.events.get("make") == "die":
            os.kill(os.getpid(), signal.SIGKILL)

    def _obs(self, event: str | None) -> Any:
        if event is None or (self.mark and not self._first_time()):
            return super()._obs(None)
        if event == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if event == "hang":
            time.sleep(60)
        if event == "hang with the GIL":
            ctypes.PyDLL(None).sleep(60)
        if event == "pause":
            time.sleep(0.2)
        if event == "odd":
            raise OddError(1, 2)
        if event == "exit":
            raise SystemExit(3)
        return super()._obs(event)

    def _first_time(self) -> bool:
        try:
            os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True


class SlowResets(CountingEnv):
    """Every reset but the first takes a while."""

    def reset(self, **kwargs: Any) -> np.ndarray:
        if self.episode >= 0:
            time.sleep(0.2)
        return super().reset(**kwargs)


class GatedResets(CountingEnv):
    """Every reset but the first waits until there is a file `gate`."""

    def __init__(self, gate: str) -> None:
        super().__init__()
        self.gate = gate

    def reset(self, **kwargs: Any) -> np.ndarray:
        while self.episode >= 0 and not Path(self.gate).exists():
            time.sleep(0.001)
        return super().reset(**kwargs)


class SlowSteps(CountingEnv):
    def __init__(self, seconds: float) -> None:
        super().__init__(100)
        self.seconds = seconds

    def step(self, action: Any) -> BaseEnvTimestep:
        time.sleep(self.seconds)
        return super().step(action)
