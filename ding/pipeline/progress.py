"""The live view of a run: one line that is rewritten in a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import TextIO

from ding.pipeline.evaluation import Evaluated
from ding.utils.limits import Limits
from ding.utils.log import WorkerLog

_TERMINAL_SECONDS, _PLAIN_SECONDS = 0.2, 10.0
# Runs without a limit are over when the stop value is reached, and nobody knows when that is.
_TOO_LONG_TO_TELL = 100 * 3600.0
_NO_LIMIT = 10**10
_LEAST_NAME = 8
CLEAR_LINE = "\r\x1b[K"


class Progress:
    """Env steps, updates, return, steps per second and time left."""

    def __init__(self, name: str, limits: Limits, stream: TextIO | None = None) -> None:
        self._name, self._limits = name, limits
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._every = _TERMINAL_SECONDS if self._live else _PLAIN_SECONDS
        self._found: Evaluated | None = None
        self._started = self._shown = time.monotonic()
        self._base: tuple[float, int, int] | None = None

    def evaluated(self, found: Evaluated) -> None:
        self._found = found
        # Without a terminal a return is news enough for a line, but not more often than this.
        if not self._live:
            self._shown = min(self._shown, time.monotonic() - self._every + 2.0)

    def update(self, env_step: int, train_iter: int, note: str = "") -> None:
        """`note` is what else there is to say."""
        now = time.monotonic()
        if self._base is None:
            self._base = (now, env_step, train_iter)
        if now - self._shown >= self._every:
            self._shown = now
            self._write(self._line(now, env_step, train_iter, note))

    def _line(self, now: float, env_step: int, train_iter: int, note: str = "") -> str:
        assert self._base is not None
        seconds = max(now - self._base[0], 1e-9)
        returns = ""
        if self._found is not None:
            returns, won = f"return {self._found.mean:.1f}", self._found.win_rate
            returns += f" (best {self._found.best:.1f})"
            returns += "" if won is None else f", win rate {won:.2f}"
        steps_done = env_step - self._base[1]
        speed = f"{steps_done / seconds:,.0f} steps/s" if steps_done else ""
        left = self._time_left(seconds, env_step, train_iter)
        steps, updates = self._limits.env_step, self._limits.train_iter
        if self._live:
            short = f"{_of(env_step, steps)} steps"
            if steps >= _NO_LIMIT > updates:
                short = f"{_of(train_iter, updates)} updates"
            return _fitted(self._name, [short, returns, speed, left and f"{left} left", note])
        parts = [
            self._name,
            f"env steps {_of(env_step, steps)}",
            f"updates {_of(train_iter, updates)}",
            *(returns, speed, left and f"at most {left} left", note),
        ]
        return "  ".join(part for part in parts if part)

    def _time_left(self, seconds: float, env_step: int, train_iter: int) -> str:
        """Time to the limit at the speed so far; empty where nobody can tell."""
        assert self._base is not None
        done = min(self._limits.fraction(train_iter, env_step), 1.0)
        before = self._limits.fraction(self._base[2], self._base[1])
        left = seconds * (1 - done) / (done - before) if done > before else math.inf
        return _clock(left) if left < _TOO_LONG_TO_TELL else ""

    def _write(self, line: str) -> None:
        self._stream.write(f"{CLEAR_LINE}{line}" if self._live else line + "\n")
        self._stream.flush()

    def message(self, text: str) -> None:
        """Lines that stay, in a terminal wrapped at words."""
        self._stream.write(f"{CLEAR_LINE}{wrapped(text)}\n" if self._live else text + "\n")
        self._stream.flush()


class Scalars:
    """The counters of a run in TensorBoard now and then, with the rates between two looks."""

    _RATES = ("env_step", "train_iter")

    def __init__(self, log: WorkerLog) -> None:
        self._log = log
        self._last: tuple[float, Mapping[str, int]] | None = None

    def write(self, values: Mapping[str, int]) -> None:
        now = time.monotonic()
        if self._last is not None:
            seconds, before = now - self._last[0], self._last[1]
            if seconds < _PLAIN_SECONDS / 2:
                return
            rates = {f"{n}_per_s": (values[n] - before[n]) / seconds for n in self._RATES}
            named = {f"{self._log.worker}_step/{n}": v for n, v in {**values, **rates}.items()}
            self._log.scalars(named, values["env_step"])
        self._last = (now, dict(values))

    def close(self) -> None:
        self._log.close()


def _of(n: int, limit: int) -> str:
    return f"{n:,}" if limit >= _NO_LIMIT else f"{n:,}/{limit:,}"


def _fitted(name: str, parts: Sequence[str]) -> str:
    """A line that leaves the last column free: parts go from the end, the name from its front."""
    most = shutil.get_terminal_size().columns - 1
    shown = [part for part in parts if part]
    while len(shown) > 1 and _LEAST_NAME + len("  ".join(["", *shown])) > most:
        shown.pop()
    room = most - len("  ".join(["", *shown]))
    if len(name) > room:
        name = f"...{name[-(room - 3) :]}" if room >= _LEAST_NAME else ""
    return "  ".join([name, *shown])[:most]


def wrapped(text: str) -> str:
    """Lines no longer than those of the terminal, with paths whole."""
    width = shutil.get_terminal_size().columns - 1
    lines = [
        textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    ]
    return "\n".join(part for line in lines for part in line or [""])


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
