"""Several runs in one terminal: a live line for each process, below the lines that stay."""

from __future__ import annotations

import io
import os
import threading
from typing import Any, TextIO

from ding.pipeline.progress import CLEAR_LINE


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
    """The last live line of each process, and how many runs are done; drawn by a thread."""

    def __init__(self, queue: Any, total: int, stream: TextIO) -> None:
        self._queue, self._total, self._stream = queue, total, stream
        self._live: dict[int, str] = {}
        self._unfinished: dict[int, str] = {}
        """Beginnings of lines that have no end yet."""
        self._done = self._drawn = 0
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
        """Lines that stay; what rewrites its line is the live line of its process."""
        if text.startswith(CLEAR_LINE):
            self._live.pop(process, None)
            text = text.removeprefix(CLEAR_LINE)
            if text and not text.endswith("\n"):
                self._live[process] = text
                return ""
        lines, newline, rest = (self._unfinished.pop(process, "") + text).rpartition("\n")
        if rest:
            self._unfinished[process] = rest
        return lines + newline

    def _draw(self, above: str, *, last: bool = False) -> None:
        erased = f"\x1b[{self._drawn}A\r\x1b[J" if self._drawn else ""
        lines = [self._live[process] for process in sorted(self._live)]
        if not last:
            lines.append(f"{self._done} of {self._total} seeds done")
        self._stream.write(erased + above + "".join(f"{line}\n" for line in lines))
        self._stream.flush()
        self._drawn = len(lines)
