"""`python -m benchmarks.updates`: updates per second of every algorithm, against two peers.

Prints a table and writes benchmarks/updates.json. One thread; sides take turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmarks.measure import (
    HERE,
    Bench,
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
from benchmarks.updates_work import JOBS, PEERS

GOAL = 1.5
SIDES = ("ours", "compiled", "sb3", "tianshou")
STORE = HERE / "updates.json"
NOTES = """\
An update is what a library does from its filled buffer on: draw, loss, gradient, Adam, targets, and
its record of losses; on-policy from a filled rollout on, with the advantages. Parameters and steps
are compared. Ours goes through the learner and logs (text, TensorBoard); the peers log nothing.
'ratio' is to the faster peer, named at the end: the median over rounds [lowest, highest], 'cpu' the
same per second of processor time. 'compiled' is policy.learn.compile=True, without compiling."""

Results = dict[str, list[Result]]


def command_of(side: str, name: str, peers: str, quick: bool) -> Command:
    options = ["--turns", *["--quick"] * quick]
    if side in ("sb3", "tianshou"):
        return Command([peers, "-m", "benchmarks.updates_peers", side, name, *options])
    options += ["--compile"] if side == "compiled" else []
    return Command([sys.executable, "-m", "benchmarks.updates_ding", name, *options])


def measure(runner: Bench, name: str, repeats: int, quick: bool) -> Results:
    """Results of all rounds by side; one that fails once is out."""
    results: Results = {side: [] for side in ("ours", "compiled", *PEERS[name])}
    for round_number in range(repeats):
        sides = {side: command_of(side, name, runner.peers, quick) for side in results}
        found = runner.round(sides)
        results = {
            side: [*rounds, found[side]] for side, rounds in results.items() if side in found
        }
        for side, one in found.items():
            each = 1e6 * one["seconds"] / one["updates"]
            say(f"round {round_number + 1}: {name}, {side}: {each:.0f} us an update")
    return results


def row_of(name: str, results: Results) -> dict[str, Any]:
    """Ratios are to the peer that ours is the least ahead of."""
    ours, compiled = results["ours"], results.get("compiled")
    peers = [peer for peer in PEERS[name] if peer in results]
    for peer in peers:
        check_same_work(ours[0], results[peer][0])
    ratios = {peer: ratio_of(ours, results[peer]) for peer in peers}
    faster = min(peers, key=lambda peer: ratios[peer].middle)
    return {
        "title": name,
        "rate": {
            side: median(rate(found, "updates") for found in rounds)
            for side, rounds in results.items()
        },
        "faster_peer": faster,
        "ratio": asdict(ratios[faster]),
        "ratio_compiled": asdict(ratio_of(compiled, results[faster])) if compiled else None,
        "goal": GOAL,
        "runs": results,
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    layout = "{:<7}" + "{:>10}" * len(SIDES) + "  {:<19}{:>6}{:>10}{:>6}{:>6}  {}"
    columns = ("ratio", "cpu", "compiled", "cpu", "goal", "")
    head = layout.format("", *SIDES, *columns)
    return "\n".join([head, "-" * len(head), *(_line(layout, row) for row in rows)])


def _line(layout: str, row: dict[str, Any]) -> str:
    ratio, compiled, rates = row["ratio"], row["ratio_compiled"], row["rate"]
    verdict = "met" if ratio["middle"] >= row["goal"] else "MISSED"
    return layout.format(
        row["title"],
        *(f"{rates[side]:,.0f}" if side in rates else "-" for side in SIDES),
        f"{ratio['middle']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]",
        f"{ratio['cpu']:.2f}",
        f"{compiled['middle']:.2f}" if compiled else "-",
        f"{compiled['cpu']:.2f}" if compiled else "-",
        f"{row['goal']:g}",
        f"{verdict} ({row['faster_peer']})",
    )


def run(peers: str | None, quick: bool, repeats: int | None, names: Sequence[str] = ()) -> str:
    """Measure, keep as JSON unless `quick`, and give the table."""
    rows = []
    with bench(peers, quick) as runner:
        for name in names or JOBS:
            about = stamp()
            results = measure(runner, name, repeats or (1 if quick else 3), quick)
            if "ours" in results and any(peer in results for peer in PEERS[name]):
                rows.append(about | row_of(name, results))
                if not quick:  # At once: the others take minutes.
                    keep_rows(STORE, rows[-1:], order=tuple(JOBS))
    return f"updates per second\n{table(rows)}\n\n{NOTES}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.updates", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less work, one round, not kept")
    parser.add_argument("--repeats", type=int, metavar="N", help="rounds (3; 1 with --quick)")
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peers")
    parser.add_argument("--only", metavar="NAMES", help=f"some of {','.join(JOBS)}")
    args = parser.parse_args()
    names = args.only.split(",") if args.only else []
    unknown = [name for name in names if name not in JOBS]
    if unknown:
        parser.error(f"--only: unknown {', '.join(unknown)}; choose from {', '.join(JOBS)}")
    print(run(args.peers, args.quick, args.repeats, names))


if __name__ == "__main__":
    main()
