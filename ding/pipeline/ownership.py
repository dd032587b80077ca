"""One run, one owner: a lock on a file in the run's directory, gone with the process that has it.

The system releases it however that process ends. The file stays and says who was the last.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
from datetime import datetime
from pathlib import Path

from ding.utils.errors import DingError

logger = logging.getLogger(__name__)

OWNER_NAME = ".owner"
_held: set[int] = set()
"""Open files of this process; each has the lock of one run."""


class Ownership:
    """The right to write into the directory of a run, from now until `release`."""

    def __init__(self, directory: Path) -> None:
        path = directory / OWNER_NAME
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            owner = path.read_text(encoding="utf-8").strip() or "another process"
            raise DingError(
                f"'{directory}' is being trained by {owner}; wait for its end, or end it with "
                "Ctrl-C, before --resume"
            ) from None
        except OSError as error:
            logger.warning("'%s' can't be locked (%s): start no second run there", path, error)
        self._handle: int | None = handle
        _held.add(handle)
        now = datetime.now().isoformat(" ", timespec="seconds")
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()} since {now}\n".encode())

    def release(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            _held.discard(handle)
            os.close(handle)


def _leave_to_parent() -> None:
    """A child has its parent's open files, and would keep their locks when the parent is gone."""
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
