"""The live view of a run: a panel of a few lines in a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import TextIO

from ding.pipeline.evaluation import Evaluated
from ding.utils.limits import Limits
from ding.utils.log import WorkerLog
from ding.utils.terminal import ERASE, flowed, panel, terminal_size, wrapped

_TERMINAL_SECONDS, _PLAIN_SECONDS = 0.2, 10.0
# Runs without a limit are over when the stop value is reached, and nobody knows when that is.
_TOO_LONG_TO_TELL = 100 * 3600.0
_NO_LIMIT = 10**10
TRAINING_EPISODES = 20
"""Episodes that the training return is the mean of."""


class Progress:
    """Phase, env steps, returns in training and evaluation, time left, speed and updates."""

    def __init__(
        self,
        name: str,
        limits: Limits,
        stream: TextIO | None = None,
        training_returns: Callable[[], Sequence[float]] = lambda: (),
    ) -> None:
        """`training_returns` gives those of the last training episodes."""
        self._name, self._limits, self._training_returns = name, limits, training_returns
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._every = _TERMINAL_SECONDS if self._live else _PLAIN_SECONDS
        self._found: Evaluated | None = None
        self._phase = "training"
        self._lasted: dict[str, float] = {}
        """Seconds that each phase took the last time."""
        self._counts, self._note = (0, 0), ""
        self._shown = time.monotonic()
        self._base: tuple[float, int, int] | None = None

    def evaluated(self, found: Evaluated) -> None:
        self._found = found
        # Without a terminal a return is news enough for a line, but not more often than this.
        if not self._live:
            self._shown = min(self._shown, time.monotonic() - self._every + 2.0)

    def update(
        self, env_step: int, train_iter: int, note: str = "", phase: str | None = None
    ) -> None:
        """`note` is what else there is to say."""
        now = time.monotonic()
        self._counts, self._note = (env_step, train_iter), note
        self._phase = phase or self._phase
        if self._base is None:
            self._base = (now, *self._counts)
        if now - self._shown >= self._every:
            self._show(now)

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Name what is being done, at once if it took long enough the last time to be read."""
        before, self._phase, began = self._phase, phase, time.monotonic()
        if self._lasted.get(phase, math.inf if self._live else 0.0) >= self._every:
            self._show(began)
        try:
            yield
        finally:
            self._lasted[phase], self._phase = time.monotonic() - began, before

    def measure_from_here(self) -> None:
        """Speed and time left follow from what comes now."""
        self._base = None

    def _show(self, now: float) -> None:
        self._shown, parts = now, [part for part in self._parts(now) if part]
        if not self._live:
            self._write("  ".join([self._name, *parts]) + "\n")
            return
        size = terminal_size()
        name, most = self._name, max(size.columns // 2, 4)
        name = name if len(name) <= most else f"...{name[3 - most :]}"
        lines = flowed([name, *parts], size.columns - 1)
        self._write(panel(lines[: max(size.lines - 1, 1)]))

    def _parts(self, now: float) -> Iterator[str]:
        """The most important first: where there is no room the last ones are left out."""
        env_step, train_iter = self._counts
        yield self._phase
        yield f"env steps {_of(env_step, self._limits.env_step)}"
        if returns := self._training_returns():
            yield f"training return {fmean(returns):.1f}"
        if self._found is not None:
            won = self._found.win_rate
            yield (
                f"evaluation {self._found.mean:.1f} (best {self._found.best:.1f})"
                f"{'' if won is None else f', win rate {won:.2f}'}"
            )
        if self._base is not None:
            seconds = max(now - self._base[0], 1e-9)
            yield self._time_left(seconds, self._base)
            n_step = env_step - self._base[1]
            yield f"{n_step / seconds:,.0f} steps/s" if n_step else ""
        yield f"updates {_of(train_iter, self._limits.train_iter)}"
        yield self._note

    def _time_left(self, seconds: float, base: tuple[float, int, int]) -> str:
        """Time to the limit at the speed so far; empty where nobody can tell."""
        env_step, train_iter = self._counts
        done = min(self._limits.fraction(train_iter, env_step), 1.0)
        before = self._limits.fraction(base[2], base[1])
        left = seconds * (1 - done) / (done - before) if done > before else math.inf
        return f"at most {_clock(left)} left" if left < _TOO_LONG_TO_TELL else ""

    def message(self, text: str) -> None:
        """Lines that stay, in a terminal wrapped at words."""
        self._write(f"{ERASE}{wrapped(text)}\n" if self._live else text + "\n")

    def close(self) -> None:
        """Leave the terminal to others."""
        if self._live:
            self._write(ERASE)

    def _write(self, text: str) -> None:
        self._stream.write(text)
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


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
