"""One file of arrays and plain data, with a checksum for every part; read whole or refused.

`magic, length of the head, head (JSON), its checksum, parts`. A part is a piece of an array.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ding.utils.checkpoint import whole_file
from ding.utils.errors import CheckpointError
from ding.utils.plain import NotPlainError, from_plain, to_plain

MAGIC = b"dingbuf1"
PART = 1 << 22  # bytes
Rows = Callable[[int, int], np.ndarray]


class Source:
    """An array to be written: its kind, and a function that gives rows from one to another."""

    def __init__(
        self, dtype: np.dtype, shape: tuple[int, ...], rows: Rows, part: int = PART
    ) -> None:
        self.dtype, self.shape, self.rows, self._part = dtype, shape, rows, part

    @classmethod
    def of(cls, array: np.ndarray) -> Source:
        return cls(array.dtype, array.shape, lambda start, stop: array[start:stop])

    def rows_per_part(self) -> int:
        width = self.dtype.itemsize * int(np.prod(self.shape[1:]))
        return max(1, self._part // max(1, width))


def write(path: str | Path, meta: Mapping[str, Any], sources: Mapping[str, Source]) -> None:
    """Under a temporary name until it is whole and on disk."""
    with whole_file(path) as file:
        file.write(MAGIC)
        head = _write_parts(file, meta, sources)
        file.write(head)
        file.write(struct.pack("<QI", len(head), zlib.crc32(head)))
        file.write(MAGIC)


def _write_parts(file: BinaryIO, meta: Mapping[str, Any], sources: Mapping[str, Source]) -> bytes:
    arrays = {}
    for name, source in sources.items():
        parts = []
        for raw in _parts(source):
            parts.append([len(raw), zlib.crc32(raw)])
            file.write(raw)
        arrays[name] = {"dtype": source.dtype.str, "shape": list(source.shape), "parts": parts}
    return json.dumps({"meta": to_plain(dict(meta)), "arrays": arrays}).encode()


def _parts(source: Source) -> Iterator[Any]:
    step, n = source.rows_per_part(), source.shape[0]
    for start in range(0, n, step):
        rows = np.ascontiguousarray(source.rows(start, min(n, start + step)))
        yield pickle.dumps(rows) if rows.dtype.hasobject else rows.reshape(-1).view(np.uint8).data


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `write` wrote. Only for files of your own: columns of objects are unpickled."""
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"no buffer data at '{path}'; give a file that save_data wrote")
    with path.open("rb") as file:
        head = _head(file, path)
        file.seek(len(MAGIC))
        try:
            arrays = {name: _array(file, about, name) for name, about in head["arrays"].items()}
            return from_plain(head["meta"]), arrays
        except (KeyError, TypeError, ValueError, NotPlainError) as error:
            raise _damaged(path, str(error)) from error


def _head(file: BinaryIO, path: Path) -> dict[str, Any]:
    size = os.fstat(file.fileno()).st_size
    tail = struct.calcsize("<QI") + len(MAGIC)
    if file.read(len(MAGIC)) != MAGIC:
        raise _damaged(path, "it does not begin as one")
    if size < len(MAGIC) + tail:
        raise _damaged(path, "it ends too early")
    file.seek(size - tail)
    length, checksum = struct.unpack("<QI", file.read(struct.calcsize("<QI")))
    if file.read(len(MAGIC)) != MAGIC or length > size - tail - len(MAGIC):
        raise _damaged(path, "it ends too early")
    file.seek(size - tail - length)
    raw = file.read(length)
    if zlib.crc32(raw) != checksum:
        raise _damaged(path, "its head has another checksum")
    return json.loads(raw)


def _array(file: BinaryIO, about: Mapping[str, Any], name: str) -> np.ndarray:
    dtype, shape = np.dtype(about["dtype"]), tuple(about["shape"])
    array = np.empty(shape, dtype)
    pieces = []
    raw = None if dtype.hasobject else array.reshape(-1).view(np.uint8)
    at = 0
    for n, checksum in about["parts"]:
        part = file.read(n)
        if len(part) != n or zlib.crc32(part) != checksum:
            raise ValueError(f"'{name}' has another checksum")
        if raw is None:
            pieces.append(pickle.loads(part))
        else:
            raw[at : at + n] = np.frombuffer(part, np.uint8)
            at += n
    return array if raw is not None else np.concatenate([array[:0], *pieces])


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"buffer data '{path}' is damaged, truncated or no such file: {reason}; nothing was "
        "loaded, use an older one"
    )
