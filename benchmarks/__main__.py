"""`python -m benchmarks`: our speed as a ratio to a peer's, measured turn by turn on this machine.

Prints tables and writes benchmarks/results.json and benchmarks/collector/results.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from statistics import median
from typing import Any

from benchmarks import agents, chaos, coordinator, league, parallel, replay, returns, updates
from benchmarks.collector.report import CASES as COLLECTOR_CASES
from benchmarks.collector.report import run_cases
from benchmarks.measure import (
    HERE,
    Bench,
    Entrant,
    Result,
    bench,
    check_same_work,
    keep_rows,
    rate,
    ratio_of,
    say,
    stamp,
)

OTHER_CASES = (
    "replay",
    "returns",
    "updates",
    "agents",
    "parallel",
    "coordinator",
    "chaos",
    "league",
)
CASES = ("ppo", "dqn", "sac", "collect", "start", *COLLECTOR_CASES, *OTHER_CASES)
START_GOAL = 3.0

NOTES = """\
Both sides: the same env steps, updates and parameters (checked), one process, the threads given.
The processes take turns of about a second: both see the same good and bad times of the machine.
Timed from the first env step to the last update, without imports, our evaluation and compiling.
Ours logs (text, TensorBoard), checkpoints and shows progress by default; the peer's defaults log
less, '+tb' is the ratio to the peer with its TensorBoard log. 'cpu' is the ratio per second of
processor time. Ratios are medians over rounds, with the lowest and highest round in brackets."""


@dataclass(frozen=True)
class Line:
    """One comparison: a row of the table."""

    title: str
    unit: str
    goal: float
    ours: Entrant
    peer: Entrant
    logged: Entrant | None = None
    """The peer with its TensorBoard log."""


def lines_of(case: str) -> list[Line]:
    goals = {"ppo": (2.0, 4.0), "dqn": (1.5, 2.1), "sac": (1.15, 1.3)}
    peer = Entrant("sb3", case)
    if case == "collect":
        return [Line("collect", "env_steps", 2.0, Entrant("ding", case), peer)]
    eager, compiled = goals[case]
    unit = "env_steps" if case == "ppo" else "updates"
    logged = Entrant("sb3", case, options=("--tensorboard",))
    with_graph = Entrant("ding", case, options=("--compile",))
    lines = [
        Line(case, unit, eager, Entrant("ding", case), peer, logged),
        Line(f"{case}, compiled", unit, compiled, with_graph, peer, logged),
    ]
    if case == "sac":
        pair = Entrant("ding", case, threads=2), Entrant("sb3", case, threads=2)
        lines.append(Line("sac, 2 threads", unit, 1.6, *pair))
    return lines


def entrants_of(lines: Sequence[Line]) -> list[Entrant]:
    """Each once, ours and the peer's in turns."""
    ours = [line.ours for line in lines]
    peers = dict.fromkeys(e for line in lines for e in (line.peer, line.logged) if e is not None)
    return [e for pair in zip_longest(ours, peers) for e in pair if e is not None]


def measure(bench: Bench, lines: Sequence[Line], repeats: int) -> dict[Entrant, list[Result]]:
    """Results of all rounds; an entrant that fails once is out."""
    results: dict[Entrant, list[Result]] = {e: [] for e in entrants_of(lines)}
    for round_number in range(repeats):
        found = bench.round({entrant: bench.command(entrant) for entrant in results})
        for entrant in list(results):
            if entrant not in found:
                del results[entrant]
                continue
            results[entrant].append(found[entrant])
            what = " ".join([entrant.side, entrant.name, *entrant.options])
            seconds = found[entrant]["seconds"]
            say(f"round {round_number + 1}: {what}, threads {entrant.threads}: {seconds:.2f} s")
    return results


def row_of(line: Line, results: dict[Entrant, list[Result]]) -> dict[str, Any]:
    ours, peer = results[line.ours], results[line.peer]
    logged = results.get(line.logged, []) if line.logged else []
    check_same_work(ours[0], peer[0])
    row = {
        "title": line.title,
        "unit": line.unit,
        "ours": median(rate(r, line.unit) for r in ours),
        "peer": median(rate(r, line.unit) for r in peer),
        "ratio": asdict(ratio_of(ours, peer)),
        "ratio_logged": asdict(ratio_of(ours, logged)) if logged else None,
        "goal": line.goal,
        "runs": {"ours": ours, "peer": peer, "logged": logged},
    }
    if "--compile" in line.ours.options:
        row["compile_seconds"] = [r["compile_seconds"] for r in ours]
    return row


def start_row(bench: Bench, repeats: int) -> dict[str, Any]:
    found = [(bench.start("ding"), bench.start("torch")) for _ in range(repeats)]
    beyond = [ours["seconds"] - torch["seconds"] for ours, torch in found]
    return {
        "title": "start",
        "unit": "seconds",
        "ours": median(ours["seconds"] for ours, _ in found),
        "torch": median(torch["seconds"] for _, torch in found),
        "beyond_torch": {"middle": median(beyond), "low": min(beyond), "high": max(beyond)},
        "beyond_torch_cpu": median(o["cpu_seconds"] - t["cpu_seconds"] for o, t in found),
        "goal": START_GOAL,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    layout = "{:<16}{:<13}{:>9}{:>9}  {:<20}{:>6}{:>6}{:>6}  {}"
    head = layout.format("work", "per second", "ours", "SB3", "ratio", "+tb", "cpu", "goal", "")
    return "\n".join([head, "-" * len(head), *(_table_line(layout, row) for row in rows)])


def _table_line(layout: str, row: dict[str, Any]) -> str:
    if row["title"] == "start":
        return _start_line(row)
    ratio, logged = row["ratio"], row["ratio_logged"]
    spread = f"{ratio['middle']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"
    verdict = "met" if ratio["middle"] >= row["goal"] else "MISSED"
    if "compile_seconds" in row:
        first, *later = row["compile_seconds"]
        again = f", again {median(later):.0f} s" if later else ""
        verdict += f"  (compiling {first:.0f} s{again})"
    return layout.format(
        row["title"],
        row["unit"].replace("_", " "),
        f"{row['ours']:,.0f}",
        f"{row['peer']:,.0f}",
        spread,
        f"{logged['middle']:.2f}" if logged else "",
        f"{ratio['cpu']:.2f}",
        f"{row['goal']:g}",
        verdict,
    )


def _start_line(row: dict[str, Any]) -> str:
    beyond = row["beyond_torch"]
    verdict = "met" if beyond["middle"] < row["goal"] else "MISSED"
    return (
        f"start: first env step after {row['ours']:.2f} s, {beyond['middle']:.2f} "
        f"[{beyond['low']:.2f}, {beyond['high']:.2f}] s beyond importing torch "
        f"(cpu {row['beyond_torch_cpu']:.2f}), goal under {row['goal']:g}: {verdict}"
    )


def profile(name: str) -> None:
    command = [sys.executable, "-m", "benchmarks.ding_work", name, "--quick", "--profile"]
    subprocess.run(command, cwd=HERE.parent, check=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less work, one round: rough numbers")
    parser.add_argument("--only", metavar="CASES", help=f"some of {','.join(CASES)}")
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        help="rounds (3; 2 of 'replay', 1 of 'collector' and with --quick)",
    )
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peers")
    parser.add_argument("--profile", choices=CASES[:4], help="profile our side of a case instead")
    args = parser.parse_args()
    args.only = args.only.split(",") if args.only else list(CASES)
    unknown = [case for case in args.only if case not in CASES]
    if unknown:
        parser.error(f"--only: unknown {', '.join(unknown)}; choose from {', '.join(CASES)}")
    return args


def main() -> None:
    args = options()
    if args.profile:
        profile(args.profile)
        return
    training = [case for case in args.only if case not in (*COLLECTOR_CASES, *OTHER_CASES)]
    collecting = [case for case in args.only if case in COLLECTOR_CASES]
    failures = run_training(args, training) if training else []
    if collecting:
        print(run_cases(collecting, args.peers, args.quick, args.repeats))
    if "returns" in args.only:
        returns.main(args.quick)
    others = {
        "replay": lambda: replay.run(args.peers, args.quick, args.repeats),
        "parallel": lambda: parallel.run(args.quick, args.peers),
        "coordinator": lambda: coordinator.run(args.quick),
        "chaos": lambda: chaos.run(args.quick),
        "league": lambda: league.run(args.quick),
        "updates": lambda: updates.run(args.peers, args.quick, args.repeats),
        "agents": lambda: agents.run(args.peers, args.quick, args.repeats),
    }
    for case in others:
        if case in args.only:
            print(others[case]())
    if failures:
        raise SystemExit(f"failed, see above: {', '.join(failures)}")


def run_training(args: argparse.Namespace, cases: Sequence[str]) -> list[str]:
    """Measure, keep and print; gives the titles of what failed."""
    about = {**stamp(), "quick": args.quick}
    rows: list[dict[str, Any]] = []
    failures: list[str] = []
    with bench(args.peers, args.quick) as runner:
        for case in cases:
            found, failed = rows_of(runner, case, args.repeats or (1 if args.quick else 3))
            rows += found
            failures += failed
    keep_rows(HERE / "results.json", [about | row for row in rows])
    print(_summary(about, rows))
    return failures


def rows_of(runner: Bench, case: str, repeats: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows of the table, and the titles of those that could not be measured."""
    if case == "start":
        return [start_row(runner, max(repeats, 3))], []
    lines = lines_of(case)
    results = measure(runner, lines, repeats)
    complete = [line for line in lines if line.ours in results and line.peer in results]
    failed = [line.title for line in lines if line not in complete]
    return [row_of(line, results) for line in complete], failed


def _summary(about: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    on = about["machine"]
    where = f"{on['cpu']}, {on['cores']} cores, Python {on['python']}, load {on['load_before']}"
    busy = on["load_before"] > 0.5 * on["cores"]
    warning = "\nThe machine was busy when this began: the numbers are rough." if busy else ""
    stamp = f"{about['date']}, commit {about['commit']}"
    return f"{stamp}\n{where}{warning}\n\n{table(rows)}\n\n{NOTES}"


if __name__ == "__main__":
    main()
