"""The race: seconds to collect 300 x 80 samples from slow envs, as a ratio to what is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks.collector.limit import limit_seconds, sync_seconds
from benchmarks.collector.rigs import ENTRANTS
from benchmarks.collector.turns import abreast, say
from benchmarks.collector.workload import PUBLISHED_COLLECTS, load_of

RACERS = tuple(name for name, entrant in ENTRANTS.items() if entrant.race)


class Cell(NamedTuple):
    load: str
    reset_scale: int
    overlap_goal: float
    sync_goal: float
    abreast: int
    """Entrants that run at the same time: of the big env they hardly ever need a core."""

    @property
    def title(self) -> str:
        return self.load if self.reset_scale == 1 else f"{self.load}, reset x{self.reset_scale}"


CELLS = (
    Cell("small", 1, 1.06, 1.36, 1),
    Cell("middle", 1, 1.05, 1.32, 1),
    Cell("big", 1, 1.04, 1.43, 4),
    Cell("small", 5, 1.06, 1.28, 1),
    Cell("middle", 5, 1.08, 1.25, 1),
    Cell("big", 5, 1.06, 1.38, 4),
)
COLLECTS = 30
QUICK_COLLECTS = 5
SYNC_MARGIN = 1.08
"""The goals of sync are those of other draws; this is what they come to with ours."""
BASE_SHARE = 5
"""One env after the other takes so long that it gets this fraction of the collects."""

NOTES = """\
Seconds as for 300 collects of 80 samples from 8 envs; the ratio to the physical limit is that of
the same envs with the same durations if infer, step and reset followed each other without a pause.
One inference at a time, overlapped inference ('ours, async') and spare envs are three claims."""


def race(peers: str, quick: bool, rounds: int = 1, only: Sequence[str] = RACERS) -> dict[str, Any]:
    collects = QUICK_COLLECTS if quick else COLLECTS
    cells = [CELLS[0]._replace(abreast=4)] if quick else list(CELLS)
    say(f"race: scaled down by {_scale(quick):g}, {collects} collects of {PUBLISHED_COLLECTS}")
    return {
        "scale": _scale(quick),
        "rounds": rounds,
        "cells": [_cell(cell, peers, collects, rounds, only) for cell in cells],
    }


def _scale(quick: bool) -> float:
    return PUBLISHED_COLLECTS / (QUICK_COLLECTS if quick else COLLECTS)


def _cell(
    cell: Cell, peers: str, collects: int, rounds: int, only: Sequence[str]
) -> dict[str, Any]:
    load = load_of(cell.load, cell.reset_scale)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in only}
    for number in range(rounds):
        for group in _groups(cell, only, number):
            turns = {name: _options(cell, name, collects) for name in group}
            for name, found in abreast(turns, peers).items():
                found["scaled_seconds"] = found["seconds"] * PUBLISHED_COLLECTS / _n(name, collects)
                runs[name].append(found)
                say(f"{cell.title}: {ENTRANTS[name].title}: {found['ratio']:.2f}")
    return {
        "title": cell.title,
        "goals": {"overlap": cell.overlap_goal, "sync": cell.sync_goal},
        "sync_limit": sync_seconds(load, collects) / limit_seconds(load, collects),
        "entrants": {name: _summary(found) for name, found in runs.items() if found},
    }


def _groups(cell: Cell, only: Sequence[str], number: int) -> Iterator[tuple[str, ...]]:
    """Ours and the others in turns, from another one on in each round."""
    mine = [name for name in only if ENTRANTS[name].ours]
    theirs = [name for name in only if not ENTRANTS[name].ours]
    size = max(len(mine), len(theirs))
    order = [side[i] for i in range(size) for side in (mine, theirs) if i < len(side)]
    at = (3 * number) % len(order)
    yield from _batched([*order[at:], *order[:at]], cell.abreast)


def _batched(names: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(names), size):
        yield tuple(names[start : start + size])


def _n(name: str, collects: int) -> int:
    return max(1, collects // BASE_SHARE) if name == "base" else collects


def _options(cell: Cell, name: str, collects: int) -> list[str]:
    scale, count = str(cell.reset_scale), str(_n(name, collects))
    return ["race", cell.load, "--reset-scale", scale, "--collects", count]


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    ratios = [run["ratio"] for run in runs]
    return {
        "ratio": median(ratios),
        "low": min(ratios),
        "high": max(ratios),
        "seconds": median(run["scaled_seconds"] for run in runs),
        "runs": runs,
    }


def table(found: dict[str, Any]) -> str:
    """Markdown: a line per entrant, a column per env; below them the goals and who won."""
    cells = found["cells"]
    head = f"| ratio to the limit, scaled down by {found['scale']:g} |"
    lines = [head + "".join(f" {cell['title']} |" for cell in cells), "|---|" + "---|" * len(cells)]
    for name, entrant in ENTRANTS.items():
        if any(name in cell["entrants"] for cell in cells):
            shown = [_shown(cell["entrants"].get(name)) for cell in cells]
            lines.append(f"| {entrant.title} | " + " | ".join(shown) + " |")
    waits = [f"{cell['sync_limit']:.2f}" for cell in cells]
    lines.append("| simulated: wait for all, reset in background | " + " | ".join(waits) + " |")
    allowed = [_verdict(cell, "sync", SYNC_MARGIN * cell["sync_limit"]) for cell in cells]
    lines.append(f"| that, times {SYNC_MARGIN}: allowed for sync | " + " | ".join(allowed) + " |")
    for goal, title in (("overlap", "goal: async"), ("sync", "goal: sync")):
        values = [_verdict(cell, goal, cell["goals"][goal]) for cell in cells]
        lines.append(f"| {title} | " + " | ".join(values) + " |")
    lines.append("| ours before every peer | " + " | ".join(map(_first, cells)) + " |")
    return "\n".join(lines)


def _shown(entrant: dict[str, Any] | None) -> str:
    return f"{entrant['ratio']:.2f} ({entrant['seconds']:.1f} s)" if entrant else "-"


def _verdict(cell: dict[str, Any], name: str, allowed: float) -> str:
    entrant = cell["entrants"].get(name)
    if entrant is None:
        return f"{allowed:.2f}"
    met = round(entrant["ratio"], 2) <= round(allowed, 2)
    return f"{allowed:.2f} {'met' if met else 'MISSED'}"


def _first(cell: dict[str, Any]) -> str:
    """Which of ours (without spare envs) are faster than every peer."""
    peers = [e["ratio"] for name, e in cell["entrants"].items() if not ENTRANTS[name].ours]
    if not peers:
        return "-"
    names = ("sync", "async", "overlap")
    ahead = [
        n for n in names if n in cell["entrants"] and cell["entrants"][n]["ratio"] < min(peers)
    ]
    return f"{', '.join(ahead) or 'none'} (best peer {min(peers):.2f})"
