"""Checksums at the end of files: a changed bit is an error, not other weights.

`content, MAGIC, CRC-32 of the content`. What reads the content takes no notice: to a zip file, such
as `torch.save` writes, it is the comment, and `pickle.load` stops before it.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"dingcrc1"
_SIZE = len(MAGIC) + 4
# The last record of a zip file ends with the length of the comment that follows.
_ZIP, _ZIP_END, _ZIP_END_SIZE = b"PK\x03\x04", b"PK\x05\x06", 22
_PART = 1 << 22


class DamagedError(ValueError):
    """Content and checksum do not fit."""


class SummingWriter:
    """Passes on what is written to it; `close` adds the checksum and leaves the file open."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._crc, self._kept = file, 0, b""

    def write(self, content: Any) -> int:
        """The end is kept back, since the checksum may have to be announced there."""
        n = len(content)
        if n >= _ZIP_END_SIZE:
            view = memoryview(content).cast("B")
            self._pass_on(self._kept)
            self._pass_on(view[:-_ZIP_END_SIZE])
            self._kept = bytes(view[-_ZIP_END_SIZE:])
        else:
            both = self._kept + bytes(content)
            self._pass_on(both[:-_ZIP_END_SIZE])
            self._kept = both[-_ZIP_END_SIZE:]
        return n

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        if self._kept[:4] == _ZIP_END:
            self._kept = self._kept[:-2] + struct.pack("<H", _SIZE)
        self._pass_on(self._kept)
        self._file.write(MAGIC + struct.pack("<I", self._crc))

    def _pass_on(self, content: Any) -> None:
        self._crc = zlib.crc32(content, self._crc)
        self._file.write(content)


def with_checksum(content: bytes) -> bytes:
    return content + MAGIC + struct.pack("<I", zlib.crc32(content))


def without_checksum(raw: bytes) -> bytes:
    """The content, if it is what was written; an older file has no checksum and is all content."""
    content, end = raw[:-_SIZE], raw[-_SIZE:]
    if not end.startswith(MAGIC):
        return raw
    if end[len(MAGIC) :] != struct.pack("<I", zlib.crc32(content)):
        raise DamagedError("its checksum is another one")
    return content


def check_file(path: Path) -> None:
    """Compare a file of `SummingWriter` with its checksum; older zip files end without one."""
    with path.open("rb") as file:
        is_zip = file.read(len(_ZIP)) == _ZIP
        size = file.seek(0, 2)
        file.seek(max(0, size - _SIZE))
        end = file.read()
        if end.startswith(MAGIC):
            if _crc(file, size - _SIZE) != struct.unpack("<I", end[len(MAGIC) :])[0]:
                raise DamagedError("its checksum is another one")
        elif is_zip:
            file.seek(max(0, size - _ZIP_END_SIZE))
            last = file.read()
            if last[:4] != _ZIP_END or last[-2:] != b"\0\0":
                raise DamagedError("its end is not what was written")


def _crc(file: BinaryIO, size: int) -> int:
    file.seek(0)
    crc = 0
    while size > 0 and (part := file.read(min(_PART, size))):
        crc, size = zlib.crc32(part, crc), size - len(part)
    return crc
