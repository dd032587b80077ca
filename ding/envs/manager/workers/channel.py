"""Channel between the parent and its env workers: fixed records in pipes, pickles where rare.

Commands go through a pipe per worker. Answers of all workers come through one pipe, so that the
parent reads many at once; a record that says so is followed by a pickle in the worker's own pipe.
A *row* is the number of an env instance: its row in the shared block.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import select
import signal
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any

from ding.envs.base_env import is_truncated

COMMAND = struct.Struct("<HHI")
"""Kind, row, and the length of the pickle that follows; for `STEP`, how many rows."""
ANSWER = struct.Struct("<HHHH")
"""Kind, incarnation of the worker, first row, number of rows."""
_SIZE = struct.Struct("<Q")
_READ_BYTES = 65536


class Command(IntEnum):
    STEP = 1
    STEP_WITH = 2
    """The action is in the pickle."""
    RESET = 3
    PREPARE = 4
    CALL = 5
    CLOSE = 6


class Answer(IntEnum):
    STEP = 1
    FIRST = 2
    STEP_WITH = 3
    """This and the following bring a pickle."""
    FIRST_WITH = 4
    ERROR = 5
    REPLY = 6


DONE, TRUNCATED, ABNORMAL, HAS_INFO, INFO_IN_PIPE = 1, 2, 4, 8, 16
"""Bits of a step's flags."""


def flags_of(done: bool, info: Any) -> int:
    abnormal = ABNORMAL if info and info.get("abnormal") else 0
    truncated = TRUNCATED if done and is_truncated(info) else 0
    return (DONE if done else 0) | truncated | abnormal


def pickled_info(info: dict[Any, Any]) -> bytes:
    """Pickle an info; values that cannot be pickled become text."""
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


class PipeReader:
    """Reads from a pipe that may end or stall at any byte."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def is_waiting(self) -> bool:
        return bool(self._poll.poll(0))

    def read_pickle(self, timeout: float) -> Any:
        """The next object; EOFError if its writer died, TimeoutError if nothing comes."""
        (size,) = _SIZE.unpack(self._exactly(_SIZE.size, timeout))
        return pickle.loads(self._exactly(size, timeout))

    def _exactly(self, count: int, timeout: float | None = None) -> bytes:
        parts = []
        while count > 0:
            if not self._poll.poll(None if timeout is None else timeout * 1000):
                raise TimeoutError
            part = os.read(self._fd, min(count, 2**20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class CommandReader(PipeReader):
    """The worker's end of its command pipe."""

    def read(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Kind, row, number and pickle of what was sent; nothing if the parent is gone."""
        data, start = os.read(self._fd, _READ_BYTES), 0
        while start < len(data):
            if len(data) - start < COMMAND.size:
                data, start = data[start:] + self._exactly(COMMAND.size - (len(data) - start)), 0
            kind, row, size = COMMAND.unpack_from(data, start)
            start += COMMAND.size
            if kind == Command.STEP:
                yield kind, row, size, b""
                continue
            if size > len(data) - start:
                data, start = data[start:] + self._exactly(size - (len(data) - start)), 0
            yield kind, row, 1, data[start : start + size]
            start += size


def command(kind: Command, row: int, pickled: bytes = b"") -> bytes:
    return COMMAND.pack(kind, row, len(pickled)) + pickled


def step_commands(rows: Iterable[int]) -> bytes:
    return b"".join(COMMAND.pack(Command.STEP, row, count) for row, count in runs(rows))


def runs(rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First row and length of every run of consecutive rows: each is one record."""
    start = end = -1
    for row in rows:
        if row != end:
            if end > start:
                yield start, end - start
            start = row
        end = row + 1
    if end > start:
        yield start, end - start


class ParentEnds:
    """The parent's ends of its pipes; a child that anybody forks must not keep them open."""

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


def _forgetting(ends: weakref.ref[ParentEnds]) -> Callable[[], None]:
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
