"""The buffer as it was at one moment, written to a file while training goes on.

A thread copies the arrays piece by piece without stopping anybody. Whoever changes slots notes
their old contents first; a piece is put right with those notes after it was copied. So a change
costs one small copy, and nobody waits for the whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ding.worker.buffer import datafile
from ding.worker.buffer.datafile import Source

_REST = 4.0
_PART = 1 << 16  # bytes: copied in less time than a batch is drawn


class _Undo:
    """What the rows of an array were before they were changed; memory only for those that were."""

    def __init__(self, array: np.ndarray) -> None:
        self._old = np.empty_like(array)
        self._noted = np.zeros(len(array), bool)

    def note(
        self, slots: np.ndarray, array: np.ndarray | None, old: np.ndarray | None = None
    ) -> None:
        """Only the first note of a slot counts; what lies beyond was empty at the beginning."""
        fresh = slots < len(self._noted)
        fresh[fresh] = ~self._noted[slots[fresh]]
        new = slots[fresh]
        if len(new):
            self._old[new] = array[new] if array is not None else old[fresh]  # type: ignore[index]
            self._noted[new] = True

    def apply(self, rows: np.ndarray, start: int, stop: int) -> None:
        noted = self._noted[start:stop].copy()  # others go on noting
        if noted.any():
            rows[noted] = self._old[start:stop][noted]


class Snapshot:
    """`arrays` by name, each with a row per slot; `fixed` are written as they are."""

    def __init__(
        self,
        path: str | Path,
        meta: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        fixed: Mapping[str, Source],
    ) -> None:
        self.path = Path(path)
        self._meta, self._arrays = dict(meta), dict(arrays)
        self._undo = {name: _Undo(array) for name, array in arrays.items()}
        self._sources = {name: self._source(name) for name in arrays} | dict(fixed)
        self._written: set[str] = set()
        self._error: BaseException | None = None
        self.lock = threading.Lock()
        """Held by whoever can only note a change after it was made."""
        self._hurry = threading.Event()
        self._awake = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="buffer snapshot", daemon=True)

    def start(self) -> Snapshot:
        self._thread.start()
        return self

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def join(self) -> None:
        """Until the thread is through, however it went."""
        self._hurry.set()
        self._thread.join()

    def wait(self) -> Path:
        """Until the file is there; raises what went wrong."""
        self.join()
        if self._error is not None:
            raise self._error
        return self.path

    def before_change(self, slots: np.ndarray, *names: str) -> None:
        """The rows of these slots are about to change in the arrays named (all if none is)."""
        for name in names or self._arrays:
            if name not in self._written:
                self._undo[name].note(slots, self._arrays[name])

    def note(self, name: str, slots: np.ndarray, old: np.ndarray) -> None:
        """These rows have just been changed, under the lock, from what they were."""
        self._undo[name].note(slots, None, old)

    def _source(self, name: str) -> Source:
        array = self._arrays[name]

        def rows(start: int, stop: int) -> np.ndarray:
            self._rest()
            with self.lock:
                copied = array[start:stop].copy()
                self._undo[name].apply(copied, start, stop)
            if stop >= len(array):
                self._written.add(name)
            return copied

        return Source(array.dtype, array.shape, rows, part=_PART)

    def _rest(self) -> None:
        """Leave most of the interpreter's time to the training, unless somebody waits."""
        if not self._hurry.is_set():
            self._hurry.wait(min(_REST * (time.monotonic() - self._awake), 0.01))
        self._awake = time.monotonic()

    def _run(self) -> None:
        self._hurry.wait(0.01)  # first of all, whoever asked for it goes on
        try:
            datafile.write(self.path, self._meta, self._sources)
        except BaseException as error:
            # Raised again by `wait`, in the thread of whoever asked for the file.
            self._error = error
