"""One training on CartPole in one process or in many; prints what it measured as a JSON line.

python -m benchmarks.parallel_work sleepy 2 --env-step 8000     # 2 collectors; 0: a serial run
python -m benchmarks.parallel_work goal 0                       # until the goal is reached
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from ding.config import override
from ding.entry.parallel import ParallelRun
from ding.entry.run import Run
from ding.entry.serial import train
from ding.utils.limits import Limits
from dizoo.classic_control.cartpole.config import cartpole_dqn_config

WARM_UP = 1000
"""Env steps before the clock starts: processes have begun by then."""


class Clock:
    """In place of a run's progress view: says nothing, and notes the time of the env steps."""

    def __init__(self, warm_up: int) -> None:
        self._warm_up = warm_up
        self._first: tuple[float, int] | None = None
        self._last = (time.perf_counter(), 0)

    def update(self, env_step: int, train_iter: int, note: str = "") -> None:
        if env_step == self._last[1]:
            return
        self._last = (time.perf_counter(), env_step)
        if self._first is None and env_step >= self._warm_up:
            self._first = self._last

    def evaluated(self, mean: float, best: float) -> None:
        """Nobody looks."""

    def message(self, text: str) -> None:
        """Nobody looks."""

    @property
    def rate(self) -> float | None:
        """Env steps per second after the warm-up."""
        if self._first is None or self._last[1] == self._first[1]:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])


def configs(case: str) -> tuple[Any, Any]:
    main = override(cartpole_dqn_config.main_config, {"exp_name": "run"})
    if case == "goal":
        return main, cartpole_dqn_config.create_config
    sleepy = {
        "env.env_id": "benchmarks.sleepy:SleepyCartPole-v0",
        "env.collector_env_num": 1,
        "env.evaluator_env_num": 1,
        "env.n_evaluator_episode": 1,
        "env.stop_value": 1e9,
        "policy.eval.evaluator.eval_freq": 10**9,
    }
    return override(main, sleepy), {"policy": {"type": "dqn"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=("sleepy", "goal"))
    parser.add_argument("collectors", type=int, help="0 for a serial run")
    parser.add_argument("--env-step", type=int, default=10**6)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    began, clock, limits = time.perf_counter(), Clock(WARM_UP), Limits(env_step=args.env_step)
    main_config, create_config = configs(args.case)
    run: Any
    if args.collectors == 0:
        with Run([main_config, create_config], args.seed, limits=limits) as run:
            run.progress = clock
            result = train(run)
    else:
        key = "policy.collect.collector.collector_num"
        many = override(main_config, {key: args.collectors})
        with ParallelRun([many, create_config], args.seed, limits) as run:
            run.progress = clock
            result = run.train()
    seconds = time.perf_counter() - began
    keys = ("env_step", "train_iter", "stop", "seconds")
    print(json.dumps({"rate": clock.rate, "whole": seconds} | {key: result[key] for key in keys}))


if __name__ == "__main__":
    main()
