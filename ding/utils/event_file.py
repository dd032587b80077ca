"""TensorBoard events, written at once and by the caller: no thread to die, no queue to fill."""

from __future__ import annotations

import logging
import os
import socket
import struct
import time
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter
from tensorboardX.proto import event_pb2
from tensorboardX.record_writer import masked_crc32c
from tensorboardX.writer import FileWriter

logger = logging.getLogger(__name__)


class EventFile:
    """Takes events until one can't be written; that is said once, and the rest is dropped."""

    def __init__(self, directory: str | Path) -> None:
        self._directory = Path(directory)
        self._handle: int | None = None
        self._is_lost = False

    def get_logdir(self) -> str:
        return str(self._directory)

    def add_event(self, event: Any) -> None:
        if self._is_lost:
            return
        try:
            if self._handle is None:
                self._handle = self._open()
            self._write(event)
        except OSError as error:
            self._is_lost = True
            self.close()
            logger.warning(
                "no more numbers for TensorBoard go to '%s' (%s); the training goes on",
                self._directory,
                error,
            )

    def _open(self) -> int:
        self._directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(self._directory / name, flags, 0o644)
        self._write(event_pb2.Event(wall_time=time.time(), file_version="brain.Event:2"))
        return self._handle

    def _write(self, event: Any) -> None:
        assert self._handle is not None
        record = _framed(event.SerializeToString())
        while record:  # A disk that is nearly full takes a part first, and then tells why.
            record = record[os.write(self._handle, record) :]

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def reopen(self) -> None:
        """The next event opens a file."""


def _framed(data: bytes) -> bytes:
    """A record of TensorFlow's: length and data, each with its checksum."""
    length = struct.pack("<Q", len(data))
    checks = [struct.pack("<I", masked_crc32c(part)) for part in (length, data)]
    return length + checks[0] + data + checks[1]


class _EventFileWriter(FileWriter):  # type: ignore[misc]
    def __init__(self, directory: str) -> None:  # Not the parent's: that one starts a thread.
        self.event_writer = EventFile(directory)
        self._default_metadata: dict[str, Any] = {}


class EventWriter(SummaryWriter):  # type: ignore[misc]
    """`SummaryWriter` that can neither block nor raise when its disk is full."""

    file_writer: FileWriter | None

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = _EventFileWriter(self.logdir)
            self.all_writers = {self.logdir: self.file_writer}
        return self.file_writer
