"""How the parent and its env workers talk: small fixed records in pipes, pickles only where rare.

Commands go through a pipe per worker. Answers of all workers come through one pipe, so that the
parent reads many at once; a record that says so is followed by a pickle in the worker's own pipe.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import select
import signal
import struct
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from ding.envs.base_env import is_truncated
from ding.envs.manager.flight.file import env_traceback, fault_kind

COMMAND = struct.Struct("<HHI")
"""Kind, unit, and the length of the pickle that follows; for `STEP`, how many units."""
ANSWER = struct.Struct("<HHHH")
"""Kind, incarnation of the worker, first unit, number of units."""
_SIZE = struct.Struct("<Q")
_READ_BYTES = 65536


class Command(IntEnum):
    STEP = 1
    STEP_WITH = 2
    """The action is in the pickle."""
    RESET = 3
    RENEW = 4
    PREPARE = 5
    CALL = 6
    CLOSE = 7


class Answer(IntEnum):
    STEP = 1
    FIRST = 2
    STEP_WITH = 3
    """This and the following bring a pickle."""
    FIRST_WITH = 4
    ERROR = 5
    REPLY = 6


class Phase(IntEnum):
    """What a worker does for an env; the parent reads it from the shared block."""

    STEP = 0
    RESET = 1
    MAKE = 2
    CALL = 3


DONE, TRUNCATED, ABNORMAL, HAS_INFO, INFO_IN_PIPE = 1, 2, 4, 8, 16
"""Bits of a step's flags."""


@dataclass(frozen=True)
class Fault:
    """Why an env is broken, in a form that every process understands."""

    kind: str
    """'raised', 'nan', 'shape', 'timeout', 'died' or 'lost'."""
    phase: Phase
    shown: str
    """As `repr` would show the exception."""
    told: str
    """As the last line of a traceback."""
    traceback: str = ""
    pickled: bytes | None = None

    def cause(self) -> BaseException:
        """The env's own exception, or if it cannot be pickled what stands in for it."""
        error: Any = None
        if self.pickled is not None:
            try:
                error = pickle.loads(self.pickled)
            except Exception:  # Its class may need other arguments; the text tells the rest.
                error = None
        if not isinstance(error, BaseException):
            error = TimeoutError(self.told) if self.kind == "timeout" else RuntimeError(self.told)
        if self.traceback:
            error.add_note(f"In the env's process:\n{self.traceback}")
        return error


def fault_of(error: BaseException, phase: Phase) -> Fault:
    try:
        pickled = pickle.dumps(error)
    except Exception:  # The env's exceptions may hold anything.
        pickled = None
    told = "".join(traceback.format_exception_only(error)).strip()
    return Fault(fault_kind(error), phase, _shown(error), told, env_traceback(error), pickled)


def _shown(error: BaseException) -> str:
    try:
        return repr(error)
    except Exception:  # Nor need its repr work.
        return type(error).__name__


def flags_of(done: bool, info: Any) -> int:
    abnormal = ABNORMAL if info and info.get("abnormal") else 0
    truncated = TRUNCATED if done and is_truncated(info) else 0
    return (DONE if done else 0) | truncated | abnormal


def pickled_info(info: dict[Any, Any]) -> bytes:
    """Of an info; what cannot be pickled in it becomes text."""
    try:
        return pickle.dumps(info)
    except Exception:  # Anything may be in there.
        return pickle.dumps({key: _picklable(part) for key, part in info.items()})


def _picklable(value: Any) -> Any:
    try:
        pickle.dumps(value)
    except Exception:  # Anything may be in there.
        return repr(value)
    return value


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def write_pickle(fd: int, pickled: bytes) -> None:
    write_all(fd, _SIZE.pack(len(pickled)) + pickled)


class PickleReader:
    """Reads pickles from a pipe that may end or stall at any byte."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def read(self, timeout: float) -> Any:
        """The next object; EOFError if its writer died, TimeoutError if nothing comes."""
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size, timeout))
        return pickle.loads(self._exactly(size, timeout))

    def _exactly(self, count: int, timeout: float) -> bytes:
        parts = []
        while count:
            if not self._poll.poll(timeout * 1000):
                raise TimeoutError
            part = os.read(self._fd, min(count, 2**20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class CommandReader:
    """The worker's end of its command pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def is_waiting(self) -> bool:
        return bool(self._poll.poll(0))

    def read(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Kind, unit, number and pickle of what was sent; nothing if the parent is gone."""
        data, start = os.read(self._fd, _READ_BYTES), 0
        while start < len(data):
            if len(data) - start < COMMAND.size:
                data, start = data[start:] + self._more(COMMAND.size - (len(data) - start)), 0
            kind, unit, size = COMMAND.unpack_from(data, start)
            start += COMMAND.size
            if kind == Command.STEP:
                yield kind, unit, size, b""
                continue
            if size > len(data) - start:
                data, start = data[start:] + self._more(size - (len(data) - start)), 0
            yield kind, unit, 1, data[start : start + size]
            start += size

    def _more(self, count: int) -> bytes:
        parts = []
        while count > 0:
            part = os.read(self._fd, count)
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def command(kind: Command, unit: int, pickled: bytes = b"") -> bytes:
    return COMMAND.pack(kind, unit, len(pickled)) + pickled


def step_commands(units: Iterable[int]) -> bytes:
    """One record for every run of consecutive units."""
    runs: list[list[int]] = []
    for unit in units:
        if runs and sum(runs[-1]) == unit:
            runs[-1][1] += 1
        else:
            runs.append([unit, 1])
    return b"".join(COMMAND.pack(Command.STEP, unit, count) for unit, count in runs)


class OwnEnds:
    """The parent's ends of its pipes; no other child, forked by whomever, shall keep them open."""

    def __init__(self) -> None:
        self.fds: set[int] = set()
        os.register_at_fork(after_in_child=_forgetting(weakref.ref(self)))

    def pipe(self, *, parent_reads: bool) -> tuple[int, int]:
        """(Read end, write end); one of them is the parent's."""
        ends = os.pipe()
        self.fds.add(ends[0] if parent_reads else ends[1])
        return ends

    def close(self, *fds: int) -> None:
        for fd in fds or tuple(self.fds):
            self.fds.discard(fd)
            os.close(fd)


def _forgetting(ends: weakref.ref[OwnEnds]) -> Callable[[], None]:
    def forget() -> None:
        alive = ends()
        if alive is not None:
            alive.close()

    return forget


def die_with(lifeline: int) -> None:
    """Let the kernel kill this process when the other end of the pipe is closed.

    A signal that cannot be caught works also while an env holds the GIL or blocks in C.
    """
    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    if poll.poll(0):  # It was closed before the signal was set.
        os._exit(1)
