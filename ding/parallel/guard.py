"""Run as a process beside a run: when that ends, however it ends, nothing of its Ray stays behind.

`python -m ding.parallel.guard PID DIRECTORY`: looks which processes belong to the Ray that process
PID has started with the directory in its command line. As soon as its input is closed it ends those
that are left and removes the directory. Linux only: elsewhere Ray's helpers take a minute to end.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_EVERY = 1.0
_PATIENCE = 10.0

Process = tuple[int, int]
"""Its number, and the time of its start: numbers are used again."""


def table() -> dict[Process, int]:
    """All processes with the numbers of their parents."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended meanwhile.
            state, parent, *rest = (entry / "stat").read_text().rpartition(")")[2].split()
            if state != "Z":
                found[int(entry.name), int(rest[17])] = int(parent)
    return found


def below(roots: set[int], processes: dict[Process, int]) -> set[Process]:
    """Processes with these numbers and all that descend from them."""
    found = {process for process in processes if process[0] in roots}
    while True:
        numbers = {number for number, _ in found}
        more = {process for process, parent in processes.items() if parent in numbers} - found
        if not more:
            return found
        found |= more


def named(directory: str, processes: dict[Process, int]) -> set[int]:
    """Processes with the directory in their command lines."""
    found = set()
    for number, _ in processes:
        with suppress(OSError):
            if directory.encode() in Path(f"/proc/{number}/cmdline").read_bytes():
                found.add(number)
    return found - {os.getpid()}


def started_in(directory: str, by: int, processes: dict[Process, int]) -> set[int]:
    """Those of them that are children of a process."""
    children = {process: parent for process, parent in processes.items() if parent == by}
    return named(directory, children)


def main(run: int, directory: str) -> None:
    known: set[Process] = set()
    ended = False
    while not ended:  # Once more when it has ended.
        ended = bool(select.select([sys.stdin], [], [], _EVERY)[0])
        processes = table()
        known |= below(started_in(directory, run, processes), processes)
    until = time.monotonic() + _PATIENCE
    while (left := _left(known, directory)) and time.monotonic() < until:
        for number, _ in left:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.1)
    shutil.rmtree(directory, ignore_errors=True)


def _left(known: set[Process], directory: str) -> set[Process]:
    """Those that live, with what they have started since."""
    processes = table()
    alive = known & set(processes)
    roots = {number for number, _ in alive} | named(directory, processes)
    return below(roots, processes)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
