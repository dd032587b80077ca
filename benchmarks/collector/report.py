"""Runs the collector's cases and keeps what they found in results.json, each with its own stamp."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.collector import overhead, race
from benchmarks.measure import made_peers, stamp

CASES = ("collector", "overhead", "soak")
RESULTS = Path(__file__).resolve().parent / "results.json"
_QUICK_FAULTS = 40


def run_cases(
    cases: Sequence[str], peers: str | None, quick: bool, rounds: int | None = None
) -> str:
    """The tables; a quick run is shown but not kept."""
    return "\n\n".join(_run_case(case, peers, quick, rounds) for case in cases)


def _run_case(case: str, peers: str | None, quick: bool, rounds: int | None) -> str:
    about = {**stamp(), "quick": quick}
    found = about | _measured(case, peers, quick, rounds)
    if not quick:
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(kept | {case: found}, indent=1) + "\n")
    return shown(case, found)


def _measured(case: str, peers: str | None, quick: bool, rounds: int | None) -> dict[str, Any]:
    if case == "soak":
        from benchmarks.collector import soak  # Only here, and not for the peers, is `ding` needed.

        job = soak.Soak(n_fault=_QUICK_FAULTS, gap=40.0) if quick else soak.Soak()
        return soak.soak_and_check(job)
    python = peers or made_peers()
    if case == "collector":
        return race.race(python, quick, rounds or 1)
    return overhead.overhead(python, quick, rounds or (1 if quick else 3))


def shown(case: str, found: dict[str, Any]) -> str:
    from benchmarks.collector import soak

    module: Any = {"collector": race, "overhead": overhead, "soak": soak}[case]
    on, name = found["machine"], "race" if case == "collector" else case
    where = f"{on['cpu']}, {on['cores']} cores, load {on['load_before']} at the start"
    stamp = f"{name}: {found['date']}, commit {found['commit']}, {where}"
    return f"{stamp}\n\n{module.table(found)}\n\n{module.NOTES}"
