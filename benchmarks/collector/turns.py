"""Starts turns, one after the other or abreast, and finds an interpreter that has the peers."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from benchmarks.collector.rigs import ENTRANTS
from benchmarks.measure import BenchmarkError, Worker, say


class Turn(Worker):
    """One entrant at work."""

    def __init__(self, name: str, options: Sequence[str], *, peers: str, directory: str) -> None:
        self.name = name
        python = sys.executable if ENTRANTS[name].ours else peers
        command = [python, "-m", "benchmarks.collector.turn", options[0], name, *options[1:]]
        super().__init__(command, directory=directory, env={"OMP_NUM_THREADS": "1"})

    def await_ready(self) -> None:
        self.line_with("ready")

    def result(self) -> dict[str, Any]:
        return json.loads(self.line_with("{"))


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
