"""Where a buffer's arrays live: in RAM, or in files that are mapped into it."""

from __future__ import annotations

import math
import mmap
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ding.utils.errors import ConfigError, nearest

_STORAGES = ("ram", "mmap")
_PAGE = 1 << 21  # bytes of a large page
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


class Memory:
    """Arrays in RAM; pages count only once they are written."""

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        return np.empty(shape, dtype)

    def reserve(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """Zeros of a shape that may never be needed in full: addresses only, until written to."""
        dtype = np.dtype(dtype)
        length = int(np.prod(shape)) * dtype.itemsize
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        block = mmap.mmap(-1, max(length, 1), flags=flags)
        _prefer_large_pages(block)
        return np.frombuffer(block, dtype, count=int(np.prod(shape))).reshape(shape)


class MappedMemory(Memory):
    """Arrays in files, which may be larger than RAM.

    A file loses its name as soon as it is mapped: its space is free again when the process ends,
    however it ends.
    """

    def __init__(self, directory: str | Path | None) -> None:
        self._directory = None if directory is None else Path(directory)
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        if np.dtype(dtype).hasobject or 0 in shape:
            return super().empty(shape, dtype)
        with tempfile.TemporaryFile(dir=self._directory, prefix="buffer_") as file:
            array = np.memmap(file, dtype=dtype, mode="w+", shape=tuple(shape))
        # As its subclass every slice would be several times as dear.
        return array.view(np.ndarray)

    def reserve(self, shape: Sequence[int], dtype: Any) -> np.ndarray:
        return self.empty(shape, dtype)  # the file is sparse


def memory_of(storage: str, path: str | Path | None) -> Memory:
    if storage not in _STORAGES:
        raise ConfigError(f"storage = '{storage}'{nearest(storage, _STORAGES)}")
    if storage == "ram" and path is not None:
        raise ConfigError(f"storage_path = '{path}' takes effect with storage = 'mmap' only")
    return Memory() if storage == "ram" else MappedMemory(path)


class Blocks:
    """Output arrays for large batches, used again once nobody holds anything of them.

    Fresh memory for every batch of images costs as much as filling it: each page is a fault.
    """

    KEPT = 4

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        nbytes = math.prod(shape) * dtype.itemsize
        return self._block(nbytes)[:nbytes].view(dtype).reshape(shape)

    def _block(self, nbytes: int) -> np.ndarray:
        for block in self._blocks:
            # Held by the list, by `block` and by the call: views and tensors of it would add more.
            if sys.getrefcount(block) == 3 and nbytes <= len(block) <= 2 * nbytes + _PAGE:
                return block
        memory = mmap.mmap(-1, nbytes + 2 * _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        _prefer_large_pages(memory)
        start = -np.frombuffer(memory, np.uint8, 1).ctypes.data % _PAGE
        block = np.frombuffer(memory, np.uint8, nbytes, offset=start)
        self._blocks = [block, *self._blocks][: self.KEPT]
        return block


def _prefer_large_pages(memory: mmap.mmap) -> None:
    """As NumPy does for large arrays: fewer faults, and reading at random is half as slow."""
    if hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
