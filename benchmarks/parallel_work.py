"""One training on CartPole in one process or in many; prints what it measured as a JSON line.

python -m benchmarks.parallel_work sleepy 2 --env-step 8000     # 2 collectors; 0: a serial run
python -m benchmarks.parallel_work sampling 2 --env-step 8000   # with hardly any learning
python -m benchmarks.parallel_work awake 2 --env-step 100000    # the same, and no sleep
python -m benchmarks.parallel_work goal 0                       # until the goal is reached
"""

from __future__ import annotations

import argparse
import json
import time
from contextlib import suppress
from typing import Any

import psutil

from ding.config import override
from ding.entry.parallel import ParallelRun
from ding.entry.serial import train
from ding.pipeline.run import Run
from ding.utils.limits import Limits
from dizoo.classic_control.cartpole.config import cartpole_dqn_config

WARM_UP = 1000
"""Env steps of each collector before the clock starts: all processes have begun by then."""

CPU_SECONDS = 1.0
"""Between two looks at what the processes have used."""
ROLES = ("collector", "learner", "buffer", "evaluator")


class Clock:
    """In place of a run's progress view: says nothing, and notes the time of the env steps."""

    def __init__(self, warm_up: int) -> None:
        self._warm_up = warm_up
        self._first: tuple[float, int] | None = None
        self._last = (time.perf_counter(), 0)
        self._cpu: list[tuple[float, int, dict[str, float]]] = []

    def update(self, env_step: int, train_iter: int, note: str = "") -> None:
        if env_step == self._last[1]:
            return
        self._last = (time.perf_counter(), env_step)
        if self._first is None and env_step >= self._warm_up:
            self._first = self._last
        # Not at the end of a run, which draws a picture.
        if self._first and (not self._cpu or self._last[0] - self._cpu[-1][0] > CPU_SECONDS):
            self._cpu = [*self._cpu[:1], (*self._last, cpu_by_role())]

    def evaluated(self, mean: float, best: float, win_rate: float | None = None) -> None:
        """Nobody looks."""

    def message(self, text: str) -> None:
        """Nobody looks."""

    @property
    def rate(self) -> float | None:
        """Env steps per second after the warm-up."""
        if self._first is None or self._last[1] == self._first[1]:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])

    def cpu_ms_per_step(self) -> dict[str, float] | None:
        """Processor time of each role since then, by env step."""
        if len(self._cpu) < 2:
            return None
        (_, first, before), (_, last, now) = self._cpu
        return {r: 1000 * (now[r] - before[r]) / (last - first) for r in now if r in before}


def cpu_by_role() -> dict[str, float]:
    """Seconds of processor time of this process, of the services and of what else Ray starts."""
    own = psutil.Process()
    found = {"driver": sum(own.cpu_times()[:2])}
    for process in own.children(recursive=True):
        with suppress(psutil.Error):
            title = " ".join(process.cmdline())
            role = next((r for r in ROLES if title.startswith(f"ray::{r}")), "ray")
            found[role] = found.get(role, 0.0) + sum(process.cpu_times()[:2])
    return found


def configs(case: str) -> tuple[Any, Any]:
    main = override(cartpole_dqn_config.main_config, {"exp_name": "run"})
    if case == "goal":
        return main, cartpole_dqn_config.create_config
    sleepy = {
        "env.env_id": "CartPole-v1" if case == "awake" else "benchmarks.sleepy:SleepyCartPole-v0",
        "env.collector_env_num": 1,
        "env.evaluator_env_num": 1,
        "env.n_evaluator_episode": 1,
        "env.stop_value": 1e9,
        "policy.eval.evaluator.eval_freq": 10**9,
    }
    if case != "sleepy":
        sleepy |= {"policy.learn.update_per_collect": 1, "policy.collect.n_sample": 256}
    return override(main, sleepy), {"policy": {"type": "dqn"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=("sleepy", "sampling", "awake", "goal"))
    parser.add_argument("collectors", type=int, help="0 for a serial run")
    parser.add_argument("--env-step", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    began, limits = time.perf_counter(), Limits(env_step=args.env_step)
    clock = Clock(WARM_UP * max(args.collectors, 1))
    main_config, create_config = configs(args.case)
    run: Any
    if args.collectors == 0:
        with Run([main_config, create_config], args.seed, limits=limits) as run:
            run.progress = clock
            result = train(run)
    else:
        key = "policy.collect.collector.collector_num"
        many = override(main_config, {key: args.collectors})
        # Rates are those of the processes; until a goal is reached, everything counts.
        system = {"coordinator": {"head_start": args.case == "goal"}}
        with ParallelRun([many, create_config, system], args.seed, limits) as run:
            run.progress = clock
            result = run.train()
    seconds = time.perf_counter() - began
    keys = ("env_step", "train_iter", "stop", "seconds")
    found = {"rate": clock.rate, "whole": seconds, "cpu_ms_per_step": clock.cpu_ms_per_step()}
    print(json.dumps(found | {key: result[key] for key in keys}))


if __name__ == "__main__":
    main()
