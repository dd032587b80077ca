"""Several runs in one terminal: a live panel for each process, below the lines that stay."""

from __future__ import annotations

import io
import os
import threading
from typing import Any, TextIO

from ding.utils.terminal import ERASE, lines_of_panel, panel, terminal_size


class ProcessText(io.TextIOBase):
    """Standard error of a process: all that is written goes to the board of its parent."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._queue.put((os.getpid(), text))
        return len(text)


class Board:
    """The last panel of each process, and how many runs are done; drawn by a thread."""

    def __init__(self, queue: Any, total: int, stream: TextIO) -> None:
        self._queue, self._total, self._stream = queue, total, stream
        self._live: dict[int, list[str]] = {}
        self._unfinished: dict[int, str] = {}
        """Beginnings of lines that have no end yet."""
        self._done = 0
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Board:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._queue.put(None)
        self._thread.join()

    def finished(self) -> None:
        """One more run is done."""
        self._queue.put((0, ""))

    def _follow(self) -> None:
        while (item := self._queue.get()) is not None:
            process, text = item
            if not process:
                self._done += 1
            self._draw(self._taken(process, text))
        self._live.clear()
        self._draw("", last=True)

    def _taken(self, process: int, text: str) -> str:
        """Lines that stay; a panel takes the place of the one before it."""
        if lines := lines_of_panel(text):
            self._live[process] = lines
            return ""
        if text.startswith(ERASE):
            self._live.pop(process, None)
            text = text.removeprefix(ERASE)
        whole, newline, rest = (self._unfinished.pop(process, "") + text).rpartition("\n")
        if rest:
            self._unfinished[process] = rest
        return whole + newline

    def _draw(self, above: str, *, last: bool = False) -> None:
        """As many lines of each panel as there is room for on the screen."""
        room = terminal_size().lines - 2
        each = max(room // max(len(self._live), 1), 1)
        lines = [line for live in sorted(self._live.values()) for line in live[:each]]
        lines = [*lines[:room], f"{self._done} of {self._total} seeds done"]
        self._stream.write(ERASE + above + ("" if last else panel(lines)))
        self._stream.flush()
