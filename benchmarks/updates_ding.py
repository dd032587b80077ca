"""Our side of `updates`: buffer, policy and learner of a real run. Prints one JSON line."""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import work
from benchmarks.ding_work import Config, dqn_config, ppo_config, sac_config
from benchmarks.updates_work import (
    CALL,
    JOBS,
    N_ATOM,
    N_COSINE,
    N_QUANTILE,
    V_MAX,
    V_MIN,
    is_on_policy,
    measured,
    steps_of,
    updates_per_call,
)
from benchmarks.work import Work
from ding.entry import Run
from ding.utils.batch import Rows

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
QUANTILES = dict(num_quantiles=N_QUANTILE)
HEADS = {
    "qrdqn": QUANTILES,
    "c51": dict(n_atom=N_ATOM, v_min=V_MIN, v_max=V_MAX),
    "iqn": dict(**QUANTILES, quantile_embedding_size=N_COSINE),
}


def distributional_config(name: str, job: Work) -> Config:
    """As DQN, but the online network picks the next action and no gradient is cut (as peers')."""
    main, create = dqn_config(job)
    policy = main["policy"]
    del policy["model"]["dueling"]
    policy["model"] |= HEADS[name]
    policy["learn"] |= dict(double_q=True, grad_clip_type=None, grad_clip_value=None)
    create["policy"]["type"] = name
    return main, create


def deterministic_config(name: str, job: Work) -> Config:
    main, create = sac_config(job)
    main["policy"]["learn"] = dict(
        batch_size=job.batch_size,
        learning_rate_actor=job.learning_rate,
        learning_rate_critic=job.learning_rate,
        target_theta=work.TARGET_THETA,
    )
    create["policy"]["type"] = name
    return main, create


def a2c_config(job: Work) -> Config:
    main, create = ppo_config(job)
    policy = main["policy"]
    del policy["recompute_adv"], policy["learn"]["epoch_per_collect"], policy["learn"]["value_norm"]
    create["policy"]["type"] = "a2c"
    return main, create


def config_of(name: str, job: Work) -> Config:
    if name in HEADS:
        return distributional_config(name, job)
    if name in ("td3", "ddpg"):
        return deterministic_config(name, job)
    plain: dict[str, Callable[[Work], Config]] = {
        "dqn": dqn_config,
        "ppo": ppo_config,
        "a2c": a2c_config,
        "sac": sac_config,
    }
    return plain[name](job)


class Ours:
    def __init__(self, name: str, compiled: bool, directory: str) -> None:
        self._job = JOBS[name]
        main, create = config_of(name, self._job)
        main["exp_name"] = str(Path(directory) / name)
        main["policy"]["learn"] |= dict(threads=1, compile=compiled)
        self.run = Run((main, create), seed=0)
        self._steps = self._collected()
        if self.run.buffer is not None:
            self.run.buffer.push(self._samples(), 1)

    def call(self) -> None:
        run, batch_size = self.run, self._job.batch_size
        if run.buffer is None:
            run.learner.train(self._samples(), 1)
            return
        for _ in range(CALL):
            run.learner.train(run.buffer.sample(batch_size, run.learner.train_iter), 1)
            run.batches.feed_back(run.learner.priority_info)

    def optimizers(self) -> Iterable[Any]:
        parts = self.run.policy.learn_state.values()
        return [part for part in parts if isinstance(part, torch.optim.Optimizer)]

    def _collected(self) -> dict[str, np.ndarray]:
        """Steps as the collector hands them to the policy."""
        steps = steps_of(self._job)
        done = steps.pop("terminated")
        last = len(done) // self._job.n_env
        steps |= {"done": done, "truncated": np.zeros_like(done), "end": done.copy()}
        steps["end"][last - 1 :: last] = True
        if is_on_policy(self._job):
            steps["logit"] = np.zeros((len(done), 2), np.float32)
        return steps

    def _samples(self) -> Rows:
        """What the collector makes of them: on-policy with values, advantages and returns."""
        columns = self.run.policy.collect_mode.get_train_sample(Rows(dict(self._steps))).columns
        columns["collect_iter"] = np.zeros(len(self._steps["done"]), np.int64)
        return Rows(columns)


def profile(side: Ours, job: Work) -> None:
    """Where the time of a few hundred updates goes."""
    profiler = cProfile.Profile()
    for _ in range(20):
        side.call()
    with profiler:
        for _ in range(800 // updates_per_call(job)):
            side.call()
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(40)


def product_share(side: Ours, job: Work) -> None:
    """How much of an update its matrix products are, which every library has to compute."""
    n_call = 400 // updates_per_call(job)
    for _ in range(20):
        side.call()
    start = time.perf_counter()
    for _ in range(n_call):
        side.call()
    seconds = time.perf_counter() - start
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(n_call):
            side.call()
    spent = {one.key: one.self_cpu_time_total for one in profiler.key_averages()}
    products = sum(spent.get(f"aten::{name}", 0.0) for name in PRODUCTS) / 1e6
    each = 1e3 / (n_call * updates_per_call(job))
    print(
        f"an update takes {seconds * each:.2f} ms, matrix products {products * each:.2f} ms of it"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=tuple(JOBS))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", action="store_true", help="take turns, see work.Turns")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--products", action="store_true", help="the share of matrix products")
    args = parser.parse_args()
    torch.set_num_threads(1)
    job = JOBS[args.name]
    with tempfile.TemporaryDirectory() as directory:
        side = Ours(args.name, args.compile, directory)
        with side.run:
            if args.profile or args.products:
                (profile if args.profile else product_share)(side, job)
                return
            found = measured(side, job, args.quick, args.turns)
    versions = {p: version(p) for p in ("torch", "numpy")}
    print(json.dumps(found | {"versions": versions}))


if __name__ == "__main__":
    main()
