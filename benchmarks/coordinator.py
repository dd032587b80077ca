"""`python -m benchmarks --only coordinator`: how far one coordinator goes.

*simulated*: the real coordinator with up to 4,000 collectors that are not there and bring a chunk
of 256 env steps every 5 s, or all at once (`coordinator_work.Fake`), off-policy (dqn) and on-policy
(ppo). *ray*: what calls to real actors cost it. *run*: processor time of all roles in a real run.
Prints tables and writes benchmarks/coordinator.json.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.coordinator_work import CHUNK, PACE
from benchmarks.measure import HERE, Bench, bench, say, stamp
from benchmarks.parallel import measure, output

COLLECTORS, QUICK_COLLECTORS = (100, 500, 1000, 2000, 4000), (100, 2000)
GOAL = 2000
"""So many collectors have to be kept busy ..."""
MOST_LAG = 250.0
"""... and 99 of 100 chunks be looked at within so many ms."""
LEAST_RATE = 0.9
"""Of the chunks that so many collectors could bring off-policy; on-policy all wait for the last."""
ACTORS = (2, 4, 8)
SIZES = (16_000, 1_000_000)
WAITING = (100, 1000, 2000, 4000)


def run(quick: bool) -> str:
    about = {**stamp(), "quick": quick}
    with bench(sys.executable, quick) as runner:
        simulated = [
            {"policy": policy, "collectors": n, **_simulated(runner, policy, n, quick)}
            for policy in ("dqn", "ppo")
            for n in (QUICK_COLLECTORS if quick else COLLECTORS)
        ]
        calls = [
            {"actors": n, "size": size, **_asked(runner, "calls", n, "--size", size)}
            for size in (SIZES[:1] if quick else SIZES)
            for n in (ACTORS[:1] if quick else ACTORS)
        ]
        waiting = [
            {"calls": n, **_asked(runner, "waiting", n)}
            for n in (WAITING[::2] if quick else WAITING)
        ]
        steps = 40_000 if quick else 200_000
        real = [
            {"collectors": n, **measure(runner, "awake", n, "--env-step", steps)} for n in (1, 2)
        ]
    found = {"simulated": simulated, "calls": calls, "waiting": waiting, "run": real}
    if not quick:
        (HERE / "coordinator.json").write_text(json.dumps(about | found, indent=1) + "\n")
    tables = (_simulated_table(simulated), _ray_table(calls, waiting), _run_table(real))
    return "\n\n".join(tables)


def _asked(runner: Bench, *options: object) -> dict[str, Any]:
    found = output(runner, sys.executable, "coordinator_work", *options)
    say(f"{' '.join(map(str, options))}: {found}")
    return found


def _simulated(runner: Bench, policy: str, n: int, quick: bool) -> dict[str, Any]:
    options, seconds = ("simulated", policy, n, "--seconds"), 8 if quick else 20
    paced = _asked(runner, *options, seconds)
    return {"paced": paced, "at_once": _asked(runner, *options, 4, "--at-once")}


def keeps_up(row: dict[str, Any]) -> bool:
    paced, wanted = row["paced"], row["collectors"] / PACE
    fast = row["policy"] == "ppo" or paced["stored_per_s"] >= LEAST_RATE * wanted
    return fast and paced["lag_ms"]["p99"] <= MOST_LAG


def _simulated_table(rows: list[dict[str, Any]]) -> str:
    layout = "{:<7}{:>10}{:>10}{:>8}{:>10}{:>11}{:>9}{:>11}  {}"
    head = ("policy", "collectors", "stored/s", "of core", "ms/chunk", "us/step", "lag p99")
    lines = [
        f"Coordinator with a chunk of {CHUNK} env steps from each collector every {PACE:g} s",
        layout.format(*head, "at most/s", "keeps up"),
    ]
    for row in rows:
        paced, good = row["paced"], keeps_up(row)
        verdict = "yes" if good else "no"
        if row["collectors"] == GOAL:
            verdict += f", goal {'met' if good else 'MISSED'}"
        numbers = (
            f"{paced['stored_per_s']:.0f}",
            f"{paced['cpu_share']:.0%}",
            f"{paced['cpu_ms_per_chunk']:.3f}",
            f"{paced['cpu_us_per_env_step']:.2f}",
            f"{paced['lag_ms']['p99']:.0f} ms",
            f"{row['at_once']['stored_per_s']:,.0f}",
        )
        lines.append(layout.format(row["policy"], row["collectors"], *numbers, verdict))
    return "\n".join(lines)


def _ray_table(calls: list[dict[str, Any]], waiting: list[dict[str, Any]]) -> str:
    lines = ["Calls to Ray actors, one under way for each"]
    lines += [
        f"{row['actors']} actors, chunks of {row['size']:,} bytes: {row['calls_per_s']:,.0f} "
        f"calls/s, {row['cpu_ms_per_call']:.2f} ms of the caller's processor each"
        for row in calls
    ]
    lines += [
        f"to look which of {row['calls']:,} are over: {row['cpu_ms_per_wait']:.2f} ms"
        for row in waiting
    ]
    return "\n".join(lines)


def _run_table(rows: list[dict[str, Any]]) -> str:
    lines = ["A real run on CartPole: processor time by env step, in microseconds"]
    for row in rows:
        cpu = row["cpu_ms_per_step"] or {}
        roles = ", ".join(f"{role} {1000 * ms:.0f}" for role, ms in cpu.items())
        lines.append(
            f"{row['collectors']} collectors, {row['rate'] or 0:,.0f} env steps/s: {roles}"
        )
    return "\n".join(lines)
