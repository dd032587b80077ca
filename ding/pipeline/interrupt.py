"""Interrupt: Ctrl-C and SIGTERM once to save and leave, once more to leave at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class EarlyInterrupt:
    """Signal handler of a process whose run has not begun: the run leaves when it begins."""

    noted = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.noted = True


class Interrupt:
    """While `with` lasts, the first signal sets `asked`; the next one raises KeyboardInterrupt."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.asked = False
        self._tell = tell
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        # Signals reach the main thread only; elsewhere whoever owns it decides.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._old[number] = signal.signal(number, self._handle)
        self.asked = any(getattr(old, "noted", False) for old in self._old.values())
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._tell("saving before leaving (once more: leave at once)")

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old = {}
