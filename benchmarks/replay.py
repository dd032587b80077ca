"""`python -m benchmarks.replay`: our buffers against peers', every cell in one session.

Prints a table per kind of rows and capacity and writes benchmarks/replay.json. Microseconds of
processor time of one thread, the least of many turns; each side in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.measure import HERE, Bench, BenchmarkError, bench, stamp
from benchmarks.replay_work import Batch, measured, raw_bytes

PEERS = ("cpprb", "tianshou", "sb3", "torchrl")
CELLS = (("vec", 100_000), ("vec", 1_000_000), ("img", 100_000))
QUICK = (("vec", 100_000), ("img", 5_000))
NOTES = """\
'ratio' is to the fastest peer. Rows of 46 bytes (obs 4 floats) or stacks of four 84x84 frames;
images are fresh in every push. Prioritised is a draw and the update of its priorities.
Memory is the growth of the process over the rows held, as a multiple of the rows' own bytes."""


class Ours:
    def __init__(self, kind: str, capacity: int, prioritised: bool = False, n: int = 1) -> None:
        from ding.utils.batch import Rows
        from ding.worker import create_buffer

        self._rows = Rows
        name = "advanced" if prioritised else "naive"
        self._buffer: Any = create_buffer(dict(type=name, replay_buffer_size=capacity))

    def prepared(self, batch: Batch) -> Any:
        return self._rows(batch)

    def push(self, prepared: Any) -> None:
        self._buffer.push(prepared)

    def sample(self, n: int) -> Any:
        return self._buffer.sample(n)

    def sample_and_update(self, n: int, priority: np.ndarray) -> None:
        columns = self._buffer.sample(n).columns
        names = ("replay_unique_id", "replay_buffer_idx")
        self._buffer.update({name: columns[name] for name in names} | {"priority": priority})


def goal_of(what: str, rows: int, kind: str) -> float:
    prioritised = what == "prioritised" and rows >= 256
    return 1.5 if prioritised or (what == "sample" and kind == "img") else 1.0


def run_side(
    runner: Bench, name: str, kind: str, capacity: int, seconds: float
) -> dict[str, float]:
    module = "benchmarks.replay" if name == "ours" else "benchmarks.replay_peers"
    python = sys.executable if name == "ours" else runner.peers
    options = ["--side"] if name == "ours" else []
    options += [name, kind, str(capacity), str(seconds)]
    found = json.loads(runner.output([python, "-m", module, *options], threads=1))
    return {f"{what} {rows}" if rows else what: value for what, rows, value in found}


def run_cell(
    runner: Bench, kind: str, capacity: int, seconds: float, rounds: int
) -> dict[str, Any]:
    """The least of some rounds: a machine that is slow for a minute is so for one side only."""
    sides: dict[str, dict[str, float]] = {}
    for name in ("ours", *PEERS) * rounds:
        try:
            found = run_side(runner, name, kind, capacity, seconds)
        except BenchmarkError as error:
            print(f"{name}: {error}", file=sys.stderr)
        else:
            before = sides.get(name, found)
            sides[name] = {what: min(value, before[what]) for what, value in found.items()}
            print(f"{kind} {capacity}: {name} done", file=sys.stderr, flush=True)
    return {"kind": kind, "capacity": capacity, "sides": sides}


def table(cell: dict[str, Any]) -> str:
    sides: dict[str, dict[str, float]] = cell["sides"]
    peers = [name for name in PEERS if name in sides]
    layout = "{:<18}" + "{:>10}" * (1 + len(peers)) + "{:>8}{:>6}  {}"
    title = f"{cell['kind']}, capacity {cell['capacity']:,}, microseconds"
    lines = [title, layout.format("", "ours", *peers, "ratio", "goal", "")]
    for what, ours in sides["ours"].items():
        if what == "memory":
            continue
        others = {name: sides[name][what] for name in peers if what in sides[name]}
        name, rows = what.split()
        goal = goal_of(name, int(rows), cell["kind"])
        ratio = min(others.values()) / ours if others else float("nan")
        cells = [f"{others[p]:.1f}" if p in others else "-" for p in peers]
        verdict = "met" if ratio >= goal else "MISSED"
        lines.append(layout.format(what, f"{ours:.1f}", *cells, f"{ratio:.2f}", goal, verdict))
    raw = raw_bytes(cell["kind"])
    held = [f"{sides[name]['memory'] / raw:.3f}" for name in ("ours", *peers)]
    lines.append(layout.format("memory / raw", *held, "", "", ""))
    return "\n".join(lines)


def run(peers: str | None, quick: bool, rounds: int | None = None) -> str:
    """Measure, keep as JSON, and give the tables."""
    rounds = rounds or (1 if quick else 2)
    about = {**stamp(), "quick": quick, "rounds": rounds}
    seconds = 0.2 if quick else 0.5
    with bench(peers, quick) as runner:
        cells = [run_cell(runner, *cell, seconds, rounds) for cell in (QUICK if quick else CELLS)]
    (HERE / "replay.json").write_text(json.dumps(about | {"cells": cells}, indent=1) + "\n")
    return "\n\n".join([*(table(cell) for cell in cells), NOTES])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less work: rough numbers")
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peers")
    parser.add_argument("--side", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.side:
        _, kind, capacity, seconds = args.side
        print(json.dumps(list(measured(Ours, kind, int(capacity), float(seconds)))))
        return
    print(run(args.peers, args.quick))


if __name__ == "__main__":
    main()
