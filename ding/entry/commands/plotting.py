"""`ding plot`: learning curves of runs in one picture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ding.entry.commands.listing import runs_below
from ding.entry.commands.table import Say
from ding.utils.errors import CheckpointError


def add_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("runs", nargs="+", metavar="RUN", help="directory of a run or of several seeds")
    p.add_argument("-o", "--output", metavar="FILE", help="picture (curve.png of the first RUN)")


def run(args: argparse.Namespace, say: Say) -> int:
    from ding.pipeline.report import draw_curves
    from ding.worker.episode_returns import besides_return

    found = {path: _result(path) for name in args.runs for path in _runs_at(Path(name))}
    results = {path: result for path, result in found.items() if result["curve"]}
    if not results:
        raise CheckpointError(f"there is nothing to draw yet in {', '.join(args.runs)}")
    goals = {result["stop_value"] for result in results.values()}
    file = Path(args.output) if args.output else Path(args.runs[0]) / "curve.png"
    curves = {str(path): result["curve"] for path, result in results.items()}
    draw_curves(file, curves, goals.pop() if len(goals) == 1 else None, Path(args.runs[0]).name)
    for path, result in results.items():
        last = result["curve"][-1]
        say(
            f"{path}: return {last['reward_mean']:.1f} (best {result['best_value']:.1f})"
            f"{besides_return(last)} after {result['env_step']:,} env steps"
        )
    say(f"drawn in {file}")
    return 0


def _runs_at(directory: Path) -> list[Path]:
    if (directory / "result.json").is_file():
        return [directory]
    inner = [path.parent for path in runs_below(directory, depth=1)]
    finished = [path for path in inner if (path / "result.json").is_file()]
    if not finished:
        raise CheckpointError(
            f"'{directory}' has no result.json: it is no run, or one that has not finished yet"
        )
    return finished


def _result(run: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((run / "result.json").read_text(encoding="utf-8"))
    return result
