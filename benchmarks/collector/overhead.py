"""The overhead: env steps per second of 8 envs that do nothing, ours against the fastest peer."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.collector.rigs import ENTRANTS
from benchmarks.collector.turns import abreast, say

CELLS = ("64 floats", "3000 floats", "4x84x84 bytes")
GOAL = 3.0
STEPPERS = tuple(name for name, entrant in ENTRANTS.items() if entrant.overhead)
JUDGED = ("sync", "overlap")
"""Ours that compare with the peers: `base` has no processes."""

NOTES = """\
Env steps per second through a vector step, medians over rounds; in brackets the ratio to the
fastest peer of the same round. Ours with retries, time limits and flight recorder on, and as many
envs per process as it chooses by itself; the peers have one process per env."""


def overhead(peers: str, quick: bool, rounds: int = 3) -> dict[str, Any]:
    loads = CELLS[:1] if quick else CELLS
    return {"rounds": rounds, "cells": [_cell(load, peers, quick, rounds) for load in loads]}


def _cell(load: str, peers: str, quick: bool, rounds: int) -> dict[str, Any]:
    runs: list[dict[str, float]] = []
    options = ["overhead", load, "--seconds", "0.5" if quick else "2"]
    for number in range(rounds):
        order = STEPPERS if number % 2 == 0 else STEPPERS[::-1]
        rates: dict[str, float] = {}
        for name in order:
            for found in abreast({name: options}, peers).values():
                rates[name] = found["steps_per_second"]
                say(f"{load}: {ENTRANTS[name].title}: {rates[name]:,.0f}")
        runs.append(rates)
    return {"title": load, "goal": GOAL, "entrants": _entrants(runs), "runs": runs}


def _entrants(runs: list[dict[str, float]]) -> dict[str, Any]:
    """Of those that gave a result in every round."""
    found = {}
    for name in STEPPERS:
        if all(name in run for run in runs):
            ratios = [run[name] / _best_peer(run) for run in runs]
            spread = {"ratio": median(ratios), "low": min(ratios), "high": max(ratios)}
            found[name] = {"steps_per_second": median(run[name] for run in runs), **spread}
    return found


def _best_peer(run: dict[str, float]) -> float:
    return max(rate for name, rate in run.items() if not ENTRANTS[name].ours)


def table(found: dict[str, Any]) -> str:
    cells = found["cells"]
    head = "| env steps/s |" + "".join(f" {cell['title']} |" for cell in cells)
    lines = [head, "|---|" + "---|" * len(cells)]
    for name in STEPPERS:
        shown = [_shown(cell["entrants"].get(name), ENTRANTS[name].ours) for cell in cells]
        lines.append(f"| {ENTRANTS[name].title} | " + " | ".join(shown) + " |")
    verdicts = [_verdict(cell) for cell in cells]
    return "\n".join(
        [*lines, f"| goal: {GOAL:g} x the fastest peer | " + " | ".join(verdicts) + " |"]
    )


def _shown(entrant: dict[str, float] | None, ours: bool) -> str:
    if entrant is None:
        return "-"
    ratio = f" ({entrant['ratio']:.2f} x)" if ours else ""
    return f"{entrant['steps_per_second']:,.0f}{ratio}"


def _verdict(cell: dict[str, Any]) -> str:
    entrants = [cell["entrants"][name] for name in JUDGED if name in cell["entrants"]]
    met = len(entrants) == len(JUDGED) and all(e["ratio"] >= cell["goal"] for e in entrants)
    return "met" if met else "MISSED"
