"""results.json, README.md and the pictures of the ledger."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ledger import peer
from ledger.defaults import DefaultTask
from ledger.interval import interval
from ledger.outcome import Outcome, load_curve
from ledger.rows import ROWS
from ledger.tasks import FRESH_EPISODES, Task

Stored = dict[str, list[Outcome]]
Curves = dict[str, list[list[float]]]
"""Env steps and return of each evaluation, by seed."""

_HEAD = f"""# Learning ledger

What the zoo's configs reach, written by `make ledger`. Every seed trains until its own evaluation
reaches the stop value of the config, or until the limit of env steps. Then the last checkpoint, not
the best one, plays {FRESH_EPISODES} fresh episodes, from starts that training never saw and that no
two seeds share. A seed has passed if it reached the stop value within the limit *and* the mean of
the fresh episodes is at least the goal. Games of two train to the limit and are judged by a measure
of their own, named with them. The result below is the interquartile mean over seeds with its 95 %
interval; a task is **solved** if the lower end reaches the goal and all seeds have passed.

Every row knows the commit that it was trained at and the files that its training runs
(`files.json`). `python -m ledger --status` tells which rows are fresh, stale or missing;
`make ledger` trains those that are due, the cheapest first, writes each seed down when it ends and
goes on where it was stopped; `python -m ledger --confirm` runs the first updates of stale rows at
their commits and here and marks those that agree in every bit. `make ledger-check` trains on seeds
that nobody chose and tells whether the results got worse by more than chance explains.
`results.json` has every seed, `curves.json` the evaluations of each.
"""

_DEFAULTS = """## Defaults

`ding train ENV POLICY --steps STEPS` without a config, beside Stable-Baselines3's defaults in the
same steps, judged alike: the interquartile mean over seeds of 100 fresh episodes each after the
last step, with its 95 % interval. A goal is a return clearly beyond random play.
(`python -m ledger --defaults`, `python -m ledger --defaults --peer PYTHON`)
"""

_OF_NEWER_ROWS = ("updates", "cpu", "code", "confirmed")
"""Left out where it is not known."""


def read_results(path: Path) -> Stored:
    """Outcomes by task; empty where nothing is stored."""
    if not path.is_file():
        return {}
    tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
    return {name: [Outcome(**seed) for seed in task["seeds"]] for name, task in tasks.items()}


def merged(stored: Stored, new: Stored) -> Stored:
    """`stored` with new seeds in place of their older versions, in the order of the tasks."""
    result = {}
    for task in ROWS:
        by_seed = {o.seed: o for o in [*stored.get(task.name, []), *new.get(task.name, [])]}
        if by_seed:
            result[task.name] = [by_seed[seed] for seed in sorted(by_seed)]
    return result


def write_results(path: Path, results: Stored) -> None:
    content = {
        "machine": machine(),
        "versions": versions(),
        "tasks": {
            task.name: {
                "config": task.module,
                "goal": task.goal,
                "limit": task.limit,
                "seeds": [_plain(outcome) for outcome in results[task.name]],
            }
            for task in ROWS
            if task.name in results
        },
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _plain(outcome: Outcome) -> dict[str, Any]:
    plain = asdict(outcome)
    return {k: v for k, v in plain.items() if v or k not in _OF_NEWER_ROWS}


def keep_curves(path: Path, root: Path, task: Task, seeds: Sequence[int]) -> Curves:
    """Env steps and returns of the evaluations of these seeds; what else is stored stays.

    Returns those of all the task's seeds.
    """
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    curves: Curves = stored.get(task.name, {})
    for seed in seeds:
        points = load_curve(root, task, seed)
        curves[str(seed)] = [[p["envstep"], round(p["reward_mean"], 2)] for p in points]
    stored[task.name] = curves
    ordered = {t.name: stored[t.name] for t in ROWS if t.name in stored}
    # A line for each seed: readable, and small changes stay small in version control.
    blocks = [
        f'"{name}": {{\n' + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in seeds.items()) + "}"
        for name, seeds in ordered.items()
    ]
    path.write_text("{" + ",\n".join(blocks) + "}\n", encoding="utf-8")
    return curves


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def versions() -> dict[str, str]:
    import gymnasium
    import torch

    import ding

    modules = {"ding": ding, "torch": torch, "numpy": np, "gymnasium": gymnasium}
    found = {name: str(module.__version__) for name, module in modules.items()}
    return {"python": platform.python_version(), **found}


def markdown(results: Stored) -> str:
    tasks = [task for task in ROWS if task.name in results]
    defaults = [task for task in tasks if isinstance(task, DefaultTask)]
    tasks = [task for task in tasks if not isinstance(task, DefaultTask)]
    blocks = [_HEAD, _overview(tasks, results)]
    if defaults:
        blocks += [_DEFAULTS, _defaults_table(defaults, results)]
    blocks += [_section(task, results[task.name]) for task in tasks]
    blocks.append(_footer())
    return "\n".join(blocks)


def _overview(tasks: Sequence[Task], results: Mapping[str, Sequence[Outcome]]) -> str:
    lines = [
        "| task | goal | limit | seeds passed | env steps, median (max) | result [95 %] |",
        "|---|---|---|---|---|---|",
    ]
    for task in tasks:
        outcomes = results[task.name]
        passed = sum(o.passed(task.goal) for o in outcomes)
        steps = [np.inf if o.steps is None else o.steps for o in outcomes]
        low = interval(outcomes)[1]
        is_solved = low >= task.goal and passed == len(outcomes) >= len(task.seeds)
        lines.append(
            f"| {task.title} | {task.goal:g} | {task.limit:,} | {passed} of {len(outcomes)} "
            f"| {_count(np.median(steps))} ({_count(max(steps))}) "
            f"| {_summed(task, outcomes)}{', solved' * is_solved} |"
        )
    return "\n".join(lines) + "\n"


def _defaults_table(tasks: Sequence[DefaultTask], results: Mapping[str, Sequence[Outcome]]) -> str:
    lines = [
        "| env | env steps | policy | goal | seeds | ours | SB3 |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in tasks:
        outcomes, theirs = results[task.name], peer.outcomes(task)
        env = task.title.removeprefix(f"{task.policy}, ")
        cells = (env, f"{task.limit:,}", task.policy, f"{task.goal:g}", len(outcomes))
        summed = (_summed(task, outcomes), _summed(task, theirs) if theirs else "")
        lines.append(f"| {' | '.join(map(str, (*cells, *summed)))} |")
    return "\n".join(lines) + "\n"


def _summed(task: Task, outcomes: Sequence[Outcome]) -> str:
    middle, low, high = map(task.shown, interval(outcomes))
    return f"{middle} [{low}, {high}]"


def _section(task: Task, outcomes: Sequence[Outcome]) -> str:
    config = task.module.replace(".", "/") + ".py"
    trained = "env steps" if task.measure else "env steps to the stop value"
    lines = [
        f"## {task.title}\n",
        f"[`{config}`](../{config})\n",
        f"| seed | {trained} | {task.judged_by} | updates per env step | s | CPU s | commit |",
        "|---|---|---|---|---|---|---|",
    ]
    for o in outcomes:
        steps = _count(np.inf if o.steps is None else o.steps)
        found = f"{task.shown(o.mean)} ± {task.shown(o.error)}"
        rate = f"{o.updates / o.steps:.2g}" if o.updates and o.steps else ""
        cpu = "" if o.cpu is None else f"{o.cpu:.0f}"
        origin = f"{o.commit}, confirmed at {o.confirmed}" if o.confirmed else o.commit
        lines.append(
            f"| {o.seed} | {steps} | {found} | {rate} | {o.seconds:.0f} | {cpu} | {origin} |"
        )
    return "\n".join([*lines, "", f"![{task.title}]({task.name}.png)\n"])


def _footer() -> str:
    cpu, installed = machine(), versions()
    names = ", ".join(f"{name} {version}" for name, version in installed.items())
    return (
        f"Measured on {cpu['cores']} cores of {cpu['cpu']} with {names}. ± is a standard error.\n"
    )


def _count(steps: float) -> str:
    return f"{int(steps):,}" if np.isfinite(steps) else "not reached"


def draw(directory: Path, task: Task, curves: Curves) -> None:
    """The evaluations during training, a line per seed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.4), dpi=100)
    for seed in sorted(curves, key=int):
        steps, returns = zip(*curves[seed], strict=True)
        axes.plot(steps, returns, label=f"seed {seed}")
    if task.measure is None:
        label = f"goal {task.goal:g}"
        axes.axhline(task.goal, color="0.4", linestyle="--", linewidth=1, label=label)
    axes.set(xlabel="env steps", ylabel="return of evaluations", title=task.title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(directory / f"{task.name}.png")
    plt.close(figure)
