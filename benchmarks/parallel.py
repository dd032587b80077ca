"""`python -m benchmarks --only parallel`: runs in many processes against the same in one.

*sleepy*: CartPole that sleeps 5 ms a step, one env per collector: env steps per second once all
processes run, and with `--peers PYTHON` those of TorchRL's Ray collector, which does not learn,
beside ours with hardly any learning. *goal*: DQN on CartPole until 195 is reached, with and without
what it takes to start the processes. Prints tables and writes benchmarks/parallel.json.
"""

from __future__ import annotations

import json
import sys
from statistics import median
from typing import Any

from benchmarks.measure import HERE, bench, say, stamp
from benchmarks.parallel_work import WARM_UP

COLLECTORS = (0, 1, 2, 4, 8)
STEPS = 3000
"""Env steps of each collector."""
GOALS = {2: 1.8}
SEEDS = tuple(range(10))


def measure(runner: Any, case: str, *options: object) -> dict[str, Any]:
    return output(runner, sys.executable, "parallel_work", case, *options)


def output(runner: Any, python: str, module: str, *options: object) -> dict[str, Any]:
    command = [python, "-m", f"benchmarks.{module}", *map(str, options)]
    return json.loads(runner.output(command, threads=1).splitlines()[-1])


def sampling(runner: Any, python: str, n: int, steps: int) -> dict[str, Any]:
    """Ours and the peer's, one after the other."""
    options = (n, "--env-step", n * steps)
    ours = measure(runner, "sampling", *options)
    peer = output(runner, python, "parallel_peers", *options, "--warm-up", n * WARM_UP)
    say(f"{n} collectors, sampling: {ours['rate']:.0f} env steps/s, TorchRL {peer['rate']:.0f}")
    return {"collectors": n, "ours": ours, "peer": peer}


def run(quick: bool, peers: str | None = None) -> str:
    about = {**stamp(), "quick": quick}
    steps, seeds = (1500, SEEDS[:1]) if quick else (STEPS, SEEDS)
    with bench(sys.executable, quick) as runner:
        sleepy = []
        for n in COLLECTORS[:3] if quick else COLLECTORS:
            found = measure(runner, "sleepy", n, "--env-step", max(n, 1) * steps)
            say(f"{n} collectors: {found['rate']:.0f} env steps/s")
            sleepy.append({"collectors": n, **found})
        beside = [
            sampling(runner, peers, n, steps)
            for n in (COLLECTORS[1:3] if quick else COLLECTORS[1:])
            if peers is not None
        ]
        goal = [
            {"collectors": n, "seed": seed, **measure(runner, "goal", n, "--seed", seed)}
            for seed in seeds
            for n in (0, 1)
        ]
    if not quick:
        text = json.dumps(about | {"sleepy": sleepy, "sampling": beside, "goal": goal}, indent=1)
        (HERE / "parallel.json").write_text(text + "\n")
    tables = [_sleepy_table(sleepy), _goal_table(goal)]
    return "\n\n".join(tables + ([_sampling_table(beside)] if beside else []))


def _sleepy_table(rows: list[dict[str, Any]]) -> str:
    lines = ["CartPole that sleeps 5 ms a step", "collectors  env steps/s  times serial"]
    serial = rows[0]["rate"]
    for row in rows:
        ratio, goal = row["rate"] / serial, GOALS.get(row["collectors"])
        verdict = "" if goal is None else f"  goal {goal} {'met' if ratio >= goal else 'MISSED'}"
        name = row["collectors"] or "serial"
        lines.append(f"{name!s:>10}  {row['rate']:>11.0f}  {ratio:>12.2f}{verdict}")
    return "\n".join(lines)


def _sampling_table(rows: list[dict[str, Any]]) -> str:
    lines = ["The same with hardly any learning", "collectors      ours  TorchRL  ratio"]
    for row in rows:
        ours, peer = row["ours"]["rate"], row["peer"]["rate"]
        lines.append(f"{row['collectors']:>10}  {ours:>8.0f}  {peer:>7.0f}  {ours / peer:>5.2f}")
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
