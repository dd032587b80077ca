"""The same training with several seeds, and what they have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ding.config import override
from ding.entry.bc import check_collects, clone
from ding.entry.expert import EXPERT_MODES, check_has_expert
from ding.entry.parallel import ParallelRun
from ding.entry.reward_model import check_has_reward_model
from ding.entry.selfplay import check_is_selfplay
from ding.entry.serial import train
from ding.league.run import LeagueRun
from ding.parallel.checkpointing import MANIFEST
from ding.pipeline.report import draw_curves, summary
from ding.pipeline.run import ConfigLike, Run, read_input
from ding.pipeline.state import STATE_NAME
from ding.utils.errors import DingError
from ding.utils.limits import Limits


def train_one(
    input_cfg: ConfigLike,
    seed: int,
    limits: Limits | None = None,
    resume: str | Path | bool = False,
    mode: str = "serial",
) -> dict[str, Any]:
    """Train in a mode of the command; returns the result."""
    if mode == "serial_bc":
        with Run(input_cfg, seed, limits=limits, resume=resume) as run:
            return clone(run)
    if mode == "parallel":
        with ParallelRun(input_cfg, seed, limits, resume) as parallel_run:
            return parallel_run.train()
    if mode == "league":
        with LeagueRun(input_cfg, seed, limits, resume) as league_run:
            return league_run.train()
    only = mode == "serial_onpolicy"
    with Run(input_cfg, seed, limits=limits, resume=resume, on_policy_only=only) as run:
        if mode == "serial_reward_model":
            check_has_reward_model(run.cfg)
        if mode in EXPERT_MODES:
            check_has_expert(run.cfg, mode)
        if mode == "selfplay":
            check_is_selfplay(run.cfg)
        check_collects(run)
        return train(run)


def train_seeds(
    input_cfg: ConfigLike,
    seeds: Sequence[int],
    directory: Path,
    limits: Limits | None = None,
    *,
    resume: bool = False,
    mode: str = "serial",
) -> tuple[bool, str]:
    """Train once per seed in `directory/seed<k>`; returns whether all finished, and a report.

    With `resume` finished seeds are kept and the one that was cut off goes on.
    """
    if len(set(seeds)) != len(seeds):
        raise DingError(f"seeds {list(seeds)}: each may be given once")
    main, create, system = read_input(input_cfg)
    results = []
    for seed in seeds:
        path = directory / f"seed{seed}"
        result = _finished(path) if resume else None
        if result is None:
            name = MANIFEST if mode == "parallel" else STATE_NAME
            begun = resume and (path / "ckpt" / name).is_file()
            cfg = override(main, {"exp_name": str(path)})
            result = train_one([cfg, create, system], seed, limits, path if begun else False, mode)
            if result["interrupted"]:
                return (
                    False,
                    f"interrupted in seed {seed}; go on with the same command and --resume",
                )
        results.append(result)
    return True, _report(directory, results)


def _finished(path: Path) -> dict[str, Any] | None:
    file = path / "result.json"
    if not file.is_file():
        return None
    result = json.loads(file.read_text(encoding="utf-8"))
    return None if result["interrupted"] else result


def _report(directory: Path, results: list[dict[str, Any]]) -> str:
    values = [result["eval_value"] for result in results]
    over = summary(values)
    seeds = [result["seed"] for result in results]
    text = json.dumps({"seeds": seeds, "eval_value": values, **over}, indent=2)
    (directory / "summary.json").write_text(text + "\n", encoding="utf-8")
    curves = {f"seed {result['seed']}": result["curve"] for result in results}
    draw_curves(directory / "curve.png", curves, results[0]["stop_value"], directory.name)
    reached = sum(result["stop"] for result in results)
    return (
        f"{len(results)} seeds, {reached} reached the goal: return mean {over['mean']:.2f}, "
        f"std {over['std']:.2f}, median {over['median']:.2f}, IQM {over['iqm']:.2f} "
        f"(95 % bootstrap interval {over['iqm_low']:.2f} to {over['iqm_high']:.2f})\n"
        f"results in {directory}: seed<k>/, summary.json, curve.png"
    )
