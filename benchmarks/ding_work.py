"""Our side: the public path from a config through `Run` and `train`. Prints one JSON line."""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import pstats
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks import work
from benchmarks.work import NOTHING, Clock, Turns, Work, now, work_of
from ding.entry import Run, train
from ding.utils.limits import Limits

Config = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Measured:
    seconds: float
    cpu_seconds: float
    env_steps: int
    updates: int
    n_parameter: int
    compile_seconds: float


class TimedRun(Run):
    """From the first env step to the last update; evaluations and compiling are left out."""

    profiler: cProfile.Profile | None = None
    turns: Turns

    def begin(self) -> None:
        self._left_out = NOTHING
        self._first_updates: list[Clock] = []
        self.learner.train = self._timed(self.learner.train)  # type: ignore[method-assign]
        if self.profiler is not None:
            self.profiler.enable()
        self.turns.wait(0)
        self._begun = now()
        super().begin()

    def evaluate_if_due(self) -> bool:
        waited = self.turns.wait(self.collector.envstep)
        if waited is not None:
            self._left_out += waited
            self._last_saved += waited.wall  # checkpoints are due by the time of its own turns
        return super().evaluate_if_due()

    def _evaluate(self) -> None:
        start = now()
        super()._evaluate()
        self._left_out += now() - start

    def _timed(self, train: Callable[..., Any]) -> Callable[..., Any]:
        """`train`, with a note of what the first two calls took."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if len(self._first_updates) == 2:
                return train(*args, **kwargs)
            start = now()
            outputs = train(*args, **kwargs)
            self._first_updates.append(now() - start)
            return outputs

        return timed

    def finish(self) -> dict[str, Any]:
        self.spent = now() - self._begun - self._left_out - self.compiling
        if self.profiler is not None:
            self.profiler.disable()
        return super().finish()

    @property
    def compiling(self) -> Clock:
        """What the first update took beyond the second."""
        first, second = self._first_updates
        return first - second if self.cfg.policy.learn.compile else NOTHING


def ppo_config(job: Work) -> Config:
    policy = dict(
        recompute_adv=False,
        discount_factor=work.GAMMA,
        model=dict(
            share_encoder=False,
            encoder_hidden_size_list=list(job.hidden),
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        learn=dict(
            learning_rate=job.learning_rate,
            epoch_per_collect=job.epochs,
            entropy_weight=work.ENTROPY_WEIGHT,
            value_norm=False,
        ),
        collect=dict(n_sample=job.rollout, gae_lambda=work.GAE_LAMBDA),
    )
    return _config("ppo", job, policy)


def dqn_config(job: Work) -> Config:
    policy = dict(
        discount_factor=work.GAMMA,
        random_collect_size=job.warm_up,
        model=dict(encoder_hidden_size_list=list(job.hidden), dueling=False, head_layer_num=0),
        learn=dict(
            update_per_collect=1,
            learning_rate=job.learning_rate,
            target_update_freq=work.TARGET_FREQ,
            double_q=False,
            grad_clip_type="clip_norm",
            grad_clip_value=work.DQN_CLIP_NORM,
        ),
        collect=dict(n_sample=1),
        other=dict(
            eps=dict(type="linear", start=1.0, end=work.EPS_END, decay=work.EPS_STEPS),
            replay_buffer=dict(replay_buffer_size=work.BUFFER_SIZE),
        ),
    )
    return _config("dqn", job, policy)


def sac_config(job: Work) -> Config:
    size = job.hidden[0]
    policy = dict(
        discount_factor=work.GAMMA,
        random_collect_size=job.warm_up,
        model=dict(actor_head_hidden_size=size, critic_head_hidden_size=size),
        learn=dict(
            update_per_collect=1,
            learning_rate_q=job.learning_rate,
            learning_rate_policy=job.learning_rate,
            learning_rate_alpha=job.learning_rate,
            target_theta=work.TARGET_THETA,
            alpha=1.0,
        ),
        collect=dict(n_sample=1),
        other=dict(replay_buffer=dict(replay_buffer_size=work.BUFFER_SIZE)),
    )
    return _config("sac", job, policy)


def _config(name: str, job: Work, policy: dict[str, Any]) -> Config:
    policy["learn"]["batch_size"] = job.batch_size
    # The peer's runs have no evaluation: ours is left with the one before the first update.
    policy["eval"] = dict(evaluator=dict(eval_freq=10**9))
    env = dict(
        env_id=job.env_id,
        collector_env_num=job.n_env,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=math.inf,
    )
    create = dict(env_manager=dict(type="base"), policy=dict(type=name))
    return dict(env=env, policy=policy), create


CONFIGS = {"ppo": ppo_config, "collect": ppo_config, "dqn": dqn_config, "sac": sac_config}


def run_of(name: str, job: Work, threads: int, compiled: bool, directory: str) -> TimedRun:
    main, create = CONFIGS[name](job)
    main["exp_name"] = str(Path(directory) / name)
    main["policy"]["learn"] |= dict(threads=threads, compile=compiled)
    return TimedRun((main, create), seed=0, limits=Limits(env_step=job.env_steps))


def time_training(run: TimedRun) -> Measured:
    train(run)
    return Measured(
        seconds=run.spent.wall,
        cpu_seconds=run.spent.cpu,
        env_steps=run.collector.envstep,
        updates=run.learner.train_iter,
        n_parameter=_n_parameter(run),
        compile_seconds=run.compiling.wall,
    )


def time_collecting(run: TimedRun, job: Work) -> Measured:
    """The collector alone, with the policy as it was born."""
    run.turns.wait(0)
    for _ in range(work.COLLECT_WARM_UP):
        run.collector.collect()
    if run.profiler is not None:
        run.profiler.enable()
    before, start = run.collector.envstep, now()
    waited = NOTHING
    while (steps := run.collector.envstep - before) < job.env_steps:
        waited += run.turns.wait(steps) or NOTHING
        run.collector.collect()
    spent = now() - start - waited
    if run.profiler is not None:
        run.profiler.disable()
    return Measured(
        seconds=spent.wall,
        cpu_seconds=spent.cpu,
        env_steps=run.collector.envstep - before,
        updates=0,
        n_parameter=_n_parameter(run),
        compile_seconds=0.0,
    )


def _n_parameter(run: Run) -> int:
    model = run.policy.learn_mode.get_attribute("model")
    return sum(p.numel() for p in model.parameters())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(CONFIGS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--turns", action="store_true", help="take turns, see work.Turns")
    args = parser.parse_args()
    job = work_of(args.name, args.quick)
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as directory:
        run = run_of(args.name, job, args.threads, args.compile, directory)
        run.profiler = cProfile.Profile() if args.profile else None
        run.turns = Turns(job, args.turns)
        with run:
            measured = time_collecting(run, job) if args.name == "collect" else time_training(run)
    if run.profiler is not None:
        pstats.Stats(run.profiler).strip_dirs().sort_stats("tottime").print_stats(25)
        return
    versions = {p: version(p) for p in ("torch", "numpy", "gymnasium")}
    print(json.dumps(asdict(measured) | {"versions": versions}))


if __name__ == "__main__":
    main()
