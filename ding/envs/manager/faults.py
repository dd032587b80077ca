"""Faults of envs: their description, time limits, and the errors that they end in."""

from __future__ import annotations

import pickle
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from types import FrameType
from typing import Any

from ding.envs.manager.flight.file import env_traceback, fault_kind
from ding.utils.errors import DingError, EnvError


class Phase(IntEnum):
    """Activity of an executor for one env."""

    STEP = 0
    RESET = 1
    MAKE = 2
    CALL = 3


class EnvTimeoutError(EnvError, TimeoutError):
    """A step or reset that took too long; handlers of either base see it."""


@dataclass(frozen=True)
class Fault:
    """Failure of an env, in a form that every process can read."""

    kind: str
    """'raised', 'nan' (or an infinite reward), 'shape' (or type), 'timeout', 'died', 'lost' (with a
    process that it shared), or 'reset' for one of the first three in a reset."""
    phase: Phase
    shown: str
    """The exception as `repr` shows it."""
    told: str
    """The last line of its traceback."""
    traceback: str
    error: BaseException
    """The env's own exception, or a plain one with its text if it could not be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: value for name, value in self.__dict__.items() if name != "error"}
        return _received, (fields, _pickled(self.error))

    def failure(self, report: str) -> EnvError:
        """The error that ends the run, caused by the env's own."""
        is_timeout = isinstance(self.error, TimeoutError)
        failed = (EnvTimeoutError if is_timeout else EnvError)(report)
        failed.__cause__ = self.error
        return failed


def fault_of(error: BaseException, phase: Phase) -> Fault:
    told = "".join(traceback.format_exception_only(error)).strip()
    try:
        shown = repr(error)
    except Exception:  # An env's exception may do anything.
        shown = type(error).__name__
    return Fault(fault_kind(error), phase, shown, told, env_traceback(error), error)


def _pickled(error: BaseException) -> bytes:
    try:
        return pickle.dumps(error)
    except Exception:  # The env's exceptions may hold anything.
        return b""


def _received(fields: dict[str, Any], pickled: bytes) -> Fault:
    try:
        error = pickle.loads(pickled)
    except Exception:  # Its class may need other arguments; the text tells the rest.
        error = None
    if not isinstance(error, BaseException):
        error = RuntimeError(fields["told"])
    if fields["traceback"]:
        error.add_note(f"In the env's process:\n{fields['traceback']}")
    return Fault(**fields, error=error)


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
