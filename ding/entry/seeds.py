"""The same training with several seeds, and what they have in common."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

from ding.config import override
from ding.entry.bc import check_collects, clone
from ding.entry.expert import EXPERT_MODES, check_has_expert
from ding.entry.parallel import ParallelRun
from ding.entry.reward_model import check_has_reward_model
from ding.entry.seed_board import Board, ProcessText
from ding.entry.selfplay import check_is_selfplay
from ding.entry.serial import train
from ding.league.run import LeagueRun
from ding.parallel.checkpointing import MANIFEST
from ding.pipeline.interrupt import EarlyInterrupt
from ding.pipeline.report import draw_curves, summary
from ding.pipeline.run import ConfigLike, Run, read_input
from ding.pipeline.state import STATE_NAME
from ding.policy.bc import BehaviourCloningPolicy
from ding.utils.errors import DingError
from ding.utils.limits import Limits
from ding.utils.registry import POLICY_REGISTRY, policy_name
from ding.worker.episode_returns import WIN_RATE


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


def mode_of(directory: Path, create: Any) -> str:
    """The mode that a run was trained in."""
    if (directory / "ckpt" / MANIFEST).is_file():
        return "parallel"
    cls = POLICY_REGISTRY.get(policy_name(create["policy"]))
    return "serial_bc" if issubclass(cls, BehaviourCloningPolicy) else "serial"


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
    main, create, system = read_input(input_cfg)

    def train_seed(seed: int, path: Path, begun: Path | bool) -> dict[str, Any]:
        cfg = override(main, {"exp_name": str(path)})
        return train_one([cfg, create, system], seed, limits, begun, mode)

    return train_each(train_seed, seeds, directory, resume)


TrainSeed = Callable[[int, Path, Path | bool], dict[str, Any]]
"""Trains with a seed in a directory, or goes on with the run there; returns the result."""


def train_each(
    train_seed: TrainSeed,
    seeds: Sequence[int],
    directory: Path,
    resume: bool = False,
    jobs: int = 1,
) -> tuple[bool, str]:
    """Train with each seed, with several `jobs` in processes side by side; see `train_seeds`."""
    if len(set(seeds)) != len(seeds):
        raise DingError(f"seeds {list(seeds)}: each may be given once")
    kept = {seed: _finished(directory / f"seed{seed}") for seed in seeds} if resume else {}
    orders = [
        (seed, directory / f"seed{seed}", resume and _begun(directory / f"seed{seed}"))
        for seed in seeds
        if kept.get(seed) is None
    ]
    trained = (
        _one_by_one(train_seed, orders) if jobs == 1 else side_by_side(train_seed, orders, jobs)
    )
    results = {seed: result for seed, result in kept.items() if result is not None} | trained
    stopped = [seed for seed in seeds if seed not in results or results[seed]["interrupted"]]
    if stopped:
        what = f"interrupted in seed {stopped[0]}"
        return False, f"{what}; go on with the same command and --resume"
    return True, _report(directory, [results[seed] for seed in seeds])


_Order = tuple[int, Path, Path | bool]


def _one_by_one(train_seed: TrainSeed, orders: Sequence[_Order]) -> dict[int, dict[str, Any]]:
    results: dict[int, dict[str, Any]] = {}
    for order in orders:
        results[order[0]] = train_seed(*order)
        if results[order[0]]["interrupted"]:
            break
    return results


def side_by_side(
    train_seed: TrainSeed, orders: Sequence[_Order], jobs: int
) -> dict[int, dict[str, Any]]:
    """Train in processes of their own, `jobs` at a time; Ctrl-C leaves out what had not begun."""
    threads = max((os.cpu_count() or 1) // jobs, 1)
    context = get_context("spawn")
    lines = context.SimpleQueue() if sys.stderr.isatty() else None
    stop = context.Event()
    pool = ProcessPoolExecutor(
        min(jobs, max(len(orders), 1)), context, _begin_process, (threads, lines, stop)
    )
    board = None if lines is None else Board(lines, len(orders), sys.stderr)
    waiting, running = list(orders), dict[Future[dict[str, Any]], int]()
    results: dict[int, dict[str, Any]] = {}
    with board or nullcontext(), pool:
        try:
            # One at a time for each process: what a pool has queued begins even after Ctrl-C.
            while waiting or running:
                while waiting and len(running) < jobs:
                    order = waiting.pop(0)
                    running[_submitted(pool, train_seed, order)] = order[0]
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    results[running.pop(future)] = result = future.result()
                    if board is not None:
                        board.finished()
                    if result["interrupted"]:
                        waiting.clear()
        except KeyboardInterrupt:
            stop.set()
    # After Ctrl-C the processes, which got the signal too, have saved and ended.
    return results | {seed: future.result() for future, seed in running.items()}


def _submitted(
    pool: ProcessPoolExecutor, train_seed: TrainSeed, order: _Order
) -> Future[dict[str, Any]]:
    # A process that this starts must not die of Ctrl-C before it can handle it.
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return pool.submit(_unless_stopped, train_seed, order)
    finally:
        signal.signal(signal.SIGINT, usual)


_stop: Any = None
"""In a process of its own: set when Ctrl-C came before it could hear of it."""


def _begin_process(threads: int, lines: Any, stop: Any) -> None:
    """Several runs share the terminal; without one they write plain lines.

    Ctrl-C is for the runs, which handle it.
    """
    global _stop
    _stop = stop
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    signal.signal(signal.SIGINT, EarlyInterrupt())
    if lines is not None:
        sys.stderr = ProcessText(lines)


def _unless_stopped(train_seed: TrainSeed, order: _Order) -> dict[str, Any]:
    return {"interrupted": True} if _stop.is_set() else train_seed(*order)


def _begun(path: Path) -> Path | bool:
    """The directory if there is a state in it to go on from."""
    states = (MANIFEST, STATE_NAME)
    return path if any((path / "ckpt" / name).is_file() for name in states) else False


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
    won = [result[WIN_RATE] for result in results if WIN_RATE in result]
    told = {"seeds": seeds, "eval_value": values, **({WIN_RATE: won} if won else {}), **over}
    text = json.dumps(told, indent=2)
    (directory / "summary.json").write_text(text + "\n", encoding="utf-8")
    curves = {f"seed {result['seed']}": result["curve"] for result in results}
    draw_curves(directory / "curve.png", curves, results[0]["stop_value"], directory.name)
    reached = sum(result["stop"] for result in results)
    return (
        f"{len(results)} seeds, {reached} reached the goal: return mean {over['mean']:.2f}, "
        f"std {over['std']:.2f}, median {over['median']:.2f}, IQM {over['iqm']:.2f} "
        f"(95 % bootstrap interval {over['iqm_low']:.2f} to {over['iqm_high']:.2f})"
        f"{f', win rate {fmean(won):.2f}' if won else ''}\n"
        f"results in {directory}: seed<k>/, summary.json, curve.png"
    )
