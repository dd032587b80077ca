"""`python -m benchmarks --only parallel`: runs in many processes against the same in one.

*sleepy*: CartPole that sleeps 5 ms a step, one env per collector: env steps per second once all
processes run. *goal*: DQN on CartPole until 195 is reached, with and without what it takes to start
the processes. Prints tables and writes benchmarks/parallel.json.
"""

from __future__ import annotations

import json
import sys
from statistics import median
from typing import Any

from benchmarks.measure import HERE, bench, say, stamp

COLLECTORS = (0, 1, 2, 4, 8)
STEPS = 3000
"""Env steps of each collector."""
GOALS = {2: 1.8}
SEEDS = (0, 1, 2)


def measure(runner: Any, case: str, *options: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.parallel_work", case, *map(str, options)]
    return json.loads(runner.output(command, threads=1).splitlines()[-1])


def run(quick: bool) -> str:
    about = {**stamp(), "quick": quick}
    steps, seeds = (1500, SEEDS[:1]) if quick else (STEPS, SEEDS)
    with bench(sys.executable, quick) as runner:
        sleepy = []
        for n in COLLECTORS[:3] if quick else COLLECTORS:
            found = measure(runner, "sleepy", n, "--env-step", max(n, 1) * steps)
            say(f"{n} collectors: {found['rate']:.0f} env steps/s")
            sleepy.append({"collectors": n, **found})
        goal = [
            {"collectors": n, "seed": seed, **measure(runner, "goal", n, "--seed", seed)}
            for n in (0, 1)
            for seed in seeds
        ]
    if not quick:
        found = json.dumps(about | {"sleepy": sleepy, "goal": goal}, indent=1)
        (HERE / "parallel.json").write_text(found + "\n")
    return f"{_sleepy_table(sleepy)}\n\n{_goal_table(goal)}"


def _sleepy_table(rows: list[dict[str, Any]]) -> str:
    lines = ["CartPole that sleeps 5 ms a step", "collectors  env steps/s  times serial"]
    serial = rows[0]["rate"]
    for row in rows:
        ratio, goal = row["rate"] / serial, GOALS.get(row["collectors"])
        verdict = "" if goal is None else f"  goal {goal} {'met' if ratio >= goal else 'MISSED'}"
        name = row["collectors"] or "serial"
        lines.append(f"{name!s:>10}  {row['rate']:>11.0f}  {ratio:>12.2f}{verdict}")
    return "\n".join(lines)


def _goal_table(rows: list[dict[str, Any]]) -> str:
    lines = ["DQN on CartPole until 195, median", "collectors  env steps  training s  whole s"]
    for n in (0, 1):
        own = [row for row in rows if row["collectors"] == n]
        steps, training, whole = (
            median(row[key] for row in own) for key in ("env_step", "seconds", "whole")
        )
        lines.append(f"{n or 'serial'!s:>10}  {steps:>9,.0f}  {training:>10.1f}  {whole:>7.1f}")
    return "\n".join(lines)
