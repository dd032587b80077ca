"""A time limit around one call, by SIGALRM."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ding.utils.errors import DingError, EnvError


class EnvTimeoutError(EnvError, TimeoutError):
    """A step or reset that took too long; handlers of either base see it."""


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise TimeoutError inside the block after `seconds`; another timer goes on afterwards."""

    def expire(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"{what} took longer than {seconds} seconds")

    old_handler = signal.signal(signal.SIGALRM, expire)
    began = time.monotonic()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_handler)
        if remaining:
            # Overdue meanwhile: let it fire at once.
            left = max(remaining - (time.monotonic() - began), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left, interval)


def check_deadlines_possible() -> None:
    if threading.current_thread() is not threading.main_thread():
        raise DingError(
            "step_timeout and reset_timeout work by a signal that only the main thread gets: "
            "launch this env manager there, or set both to None"
        )


def env_error(message: str, cause: BaseException) -> EnvError:
    """The error that an env's failure ends in."""
    return (EnvTimeoutError if isinstance(cause, TimeoutError) else EnvError)(message)
