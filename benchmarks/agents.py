"""`python -m benchmarks --only agents`: joint env steps/s of QMIX and MAPPO on simple_spread.

Ours against an EPyMARL-style loop of our own and, with `--peers PYTHON`, against BenchMARL
(TorchRL) where that interpreter has it. Prints a table and writes benchmarks/agents.json.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmarks.agents_work import JOBS
from benchmarks.measure import (
    HERE,
    Bench,
    BenchmarkError,
    Command,
    Result,
    bench,
    check_same_work,
    keep_rows,
    rate,
    ratio_of,
    say,
    stamp,
)

GOAL = 2.0
STORE = HERE / "agents.json"
MODULES = {
    "ours": "agents_ding",
    "ours_mpe2": "agents_ding",
    "epymarl": "agents_epymarl",
    "benchmarl": "agents_benchmarl",
}
PEERS = ("epymarl", "benchmarl")
NOTES = """\
Training on simple_spread (3 agents, 8 envs in one process, one thread): the same joint steps,
updates and batches on all sides, with 'epymarl' the same parameters, too ('benchmarl' has mixers
and critics of its own). 'epymarl' is a loop of ours in EPyMARL's style, and leaner than it: no
processes, no log. Ours logs and saves; it steps its own simple_spread, whose numbers are those of
mpe2 bit for bit, 'ours_mpe2' mpe2 itself, as the peers do. The sides take turns. 'ratio' is that of
'ours' to the faster peer: the median over rounds [lowest, highest], 'cpu' the same per second of
processor time."""

Results = dict[str, list[Result]]


def has_benchmarl(python: str) -> bool:
    command = [python, "-W", "ignore", "-c", "import benchmarl.experiment, mpe2"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def measure(runner: Bench, name: str, sides: Sequence[str], repeats: int, quick: bool) -> Results:
    """Results of all rounds by side; one that fails once is out."""
    results: Results = {side: [] for side in sides}
    for round_number in range(repeats):
        commands = {}
        for side in results:
            python = runner.peers if side == "benchmarl" else sys.executable
            module = f"benchmarks.{MODULES[side]}"
            options = ["--turns", *["--quick"] * quick, *["--mpe2"] * (side == "ours_mpe2")]
            commands[side] = Command([python, "-m", module, name, *options])
        found = runner.round(commands)
        results = {side: [*results[side], found[side]] for side in results if side in found}
        for side, one in found.items():
            say(f"round {round_number + 1}: {name}, {side}: {rate(one, 'env_steps'):.0f} steps/s")
    return results


def row_of(name: str, results: Results) -> dict[str, Any]:
    """Ratios are to the peer that ours is the least ahead of."""
    ours, peers = results["ours"], [side for side in PEERS if side in results]
    check_same_work(ours[0], results["epymarl"][0])
    for peer in peers:
        for key in ("env_steps", "updates"):
            if ours[0][key] != results[peer][0][key]:
                raise BenchmarkError(f"{name}: {key} of {peer} differ: {results[peer][0][key]}")
    ratios = {peer: ratio_of(ours, results[peer]) for peer in peers}
    faster = min(peers, key=lambda peer: ratios[peer].middle)
    return {
        "title": name,
        "rate": {
            side: median(rate(r, "env_steps") for r in found) for side, found in results.items()
        },
        "faster_peer": faster,
        "ratio": asdict(ratios[faster]),
        "ratios": {peer: asdict(ratio) for peer, ratio in ratios.items()},
        "goal": GOAL,
        "runs": results,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    layout = "{:<7}{:>9}{:>11}{:>9}{:>11}  {:<19}{:>6}{:>6}  {}"
    head = layout.format("", *MODULES, "ratio", "cpu", "goal", "")
    return "\n".join([head, "-" * len(head), *(_line(layout, row) for row in rows)])


def _line(layout: str, row: dict[str, Any]) -> str:
    ratio, rates = row["ratio"], row["rate"]
    verdict = "met" if ratio["middle"] >= row["goal"] else "MISSED"
    return layout.format(
        row["title"],
        *(f"{rates[side]:,.0f}" if side in rates else "-" for side in MODULES),
        f"{ratio['middle']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]",
        f"{ratio['cpu']:.2f}",
        f"{row['goal']:g}",
        f"{verdict} ({row['faster_peer']})",
    )


def run(peers: str | None, quick: bool, repeats: int | None) -> str:
    """Measure, keep as JSON unless `quick`, and give the table."""
    sides = ["ours", "ours_mpe2", "epymarl"]
    if peers is not None and has_benchmarl(peers):
        sides.append("benchmarl")
    elif peers is not None:
        say(f"{peers} has no benchmarl that works beside mpe2: left out")
    rows = []
    with bench(peers or sys.executable, quick) as runner:
        for name in JOBS:
            about = stamp()
            results = measure(runner, name, sides, repeats or (1 if quick else 3), quick)
            if not {"ours", "epymarl"} <= set(results):
                raise BenchmarkError(f"{name}: a side failed, see above")
            rows.append(about | row_of(name, results))
            if not quick:
                keep_rows(STORE, rows[-1:], order=tuple(JOBS))
    return f"joint env steps per second of training\n{table(rows)}\n\n{NOTES}"
