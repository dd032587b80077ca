"""Files that belong to samples: removed with them, but not while a batch still needs them."""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class FileKeeper:
    """Counts who needs a file; thread-safe, since batches may be forgotten anywhere."""

    def __init__(self) -> None:
        # A batch may be collected while the lock is held by the same thread.
        self._lock = threading.RLock()
        self._lent: Counter[str] = Counter()
        self._dropped: set[str] = set()
        self._batches: dict[int, Any] = {}

    def lend(self, batch: Any, paths: Iterable[Any]) -> None:
        """A batch needs these files until it is released or forgotten."""
        named = [str(path) for path in paths if path is not None]
        with self._lock:
            self._lent.update(named)
            self._batches[id(batch)] = weakref.finalize(batch, self._returned, id(batch), named)

    def release(self, batch: Any) -> None:
        with self._lock:
            finalizer = self._batches.get(id(batch))
        if finalizer is not None:
            finalizer()

    def _returned(self, key: int, paths: list[str]) -> None:
        with self._lock:
            self._batches.pop(key, None)
            self._lent.subtract(paths)
            for path in set(paths):
                if self._lent[path] <= 0:
                    del self._lent[path]
                    if path in self._dropped:
                        self._remove(path)

    def drop(self, paths: Iterable[Any]) -> None:
        """The samples of these files are gone."""
        with self._lock:
            for path in {str(path) for path in paths if path is not None}:
                self._dropped.add(path)
                if not self._lent[path]:
                    self._remove(path)

    def _remove(self, path: str) -> None:
        self._dropped.discard(path)
        Path(path).unlink(missing_ok=True)
