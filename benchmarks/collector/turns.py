"""Starts turns, one after the other or abreast, and finds an interpreter that has the peers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Self

from benchmarks.collector.rigs import ENTRANTS
from benchmarks.measure import HERE, BenchmarkError


class Turn:
    """A process with one entrant; `with` ends it and all that it started."""

    def __init__(self, name: str, options: Sequence[str], *, peers: str, directory: str) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed when the turn ends)
        python = sys.executable if ENTRANTS[name].ours else peers
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.collector.turn", options[0], name, *options[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=directory,
            env=os.environ | {"PYTHONPATH": str(HERE.parent), "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )

    def await_ready(self) -> None:
        self._line_with("ready")

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def result(self) -> dict[str, Any]:
        return json.loads(self._line_with("{"))

    def _line_with(self, start: str) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:  # Some libraries greet on standard output.
            if line.startswith(start):
                return line
        self._errors.seek(0)
        raise BenchmarkError(f"{self.name} failed:\n{self._errors.read()[-600:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10 if kind is None else 0)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._errors.close()


def abreast(turns: Mapping[str, Sequence[str]], peers: str) -> dict[str, dict[str, Any]]:
    """Results by name; all are set up before the first one starts. What fails is left out."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as directory, ExitStack() as running:
        ready = []
        for name, options in turns.items():
            turn = Turn(name, options, peers=peers, directory=directory)
            running.enter_context(turn)
            ready.append(turn)
        for step in (Turn.await_ready, Turn.go):
            ready = [turn for turn in ready if _succeeds(step, turn)]
        for turn in ready:
            with suppress(BenchmarkError):
                found[turn.name] = turn.result()
    for name in turns.keys() - found.keys():
        say(f"{name} gave no result")
    return found


def _succeeds(step: Any, turn: Turn) -> bool:
    try:
        step(turn)
    except (BenchmarkError, BrokenPipeError) as error:
        say(str(error))
        return False
    return True


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
