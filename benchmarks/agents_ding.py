"""Our side of `benchmarks.agents`: a config through `Run` and `train`. Prints one JSON line."""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import pstats
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from benchmarks import agents_work as spec
from benchmarks.agents_work import job_of
from benchmarks.ding_work import TimedRun, time_training
from benchmarks.work import Turns, Work
from ding.utils.limits import Limits

Policy = dict[str, Any]


def qmix(job: Work) -> Policy:
    return dict(
        model=dict(hidden_size_list=list(job.hidden), lstm_type=None, mixing_embed_dim=spec.MIXING),
        learn=dict(
            update_per_collect=job.epochs,
            optim_type="adam",
            weight_decay=0.0,
            grad_clip_type="clip_norm",
            grad_clip_value=spec.CLIP_NORM,
            target_update_theta=spec.TARGET_THETA,
            double_q=True,
        ),
        collect=dict(unroll_len=1),
        other=dict(
            eps=dict(type="linear", start=1.0, end=spec.EPS_END, decay=spec.EPS_STEPS),
            replay_buffer=dict(replay_buffer_size=spec.BUFFER),
        ),
    )


def mappo(job: Work) -> Policy:
    size, layers = job.hidden[0], len(job.hidden)
    return dict(
        model=dict(
            actor_head_hidden_size=size,
            actor_head_layer_num=layers - 1,
            critic_head_hidden_size=size,
            critic_head_layer_num=layers - 1,
        ),
        recompute_adv=False,
        learn=dict(
            epoch_per_collect=job.epochs,
            entropy_weight=spec.ENTROPY_WEIGHT,
            clip_ratio=spec.CLIP,
            grad_clip_value=spec.CLIP_NORM,
            value_norm=False,
        ),
        collect=dict(gae_lambda=spec.GAE_LAMBDA),
    )


POLICIES = {"qmix": qmix, "mappo": mappo}


def configs(
    name: str, job: Work, directory: str, fast: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    policy = POLICIES[name](job)
    policy["discount_factor"] = spec.GAMMA
    policy["learn"] |= dict(batch_size=job.batch_size, learning_rate=job.learning_rate, threads=1)
    policy["collect"]["n_sample"] = job.rollout
    # The peers' runs have no evaluation: ours is left with the one before the first update.
    policy["eval"] = dict(evaluator=dict(eval_freq=10**9))
    env = dict(
        env_id=job.env_id,
        n_agent=spec.N_AGENT,
        max_cycles=spec.EPISODE,
        fast=fast,
        collector_env_num=job.n_env,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=math.inf,
    )
    create = dict(
        env=dict(type="pettingzoo"), env_manager=dict(type="base"), policy=dict(type=name)
    )
    return dict(exp_name=str(Path(directory) / name), env=env, policy=policy), create


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(POLICIES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--mpe2", action="store_true", help="step mpe2's env, not our own of it")
    parser.add_argument("--turns", action="store_true", help="take turns, see work.Turns")
    args = parser.parse_args()
    job = job_of(args.name, args.quick)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as directory:
        limits = Limits(env_step=job.env_steps)
        config = configs(args.name, job, directory, not args.mpe2)
        run = TimedRun(config, seed=0, limits=limits)
        run.profiler = cProfile.Profile() if args.profile else None
        run.turns = Turns(job, args.turns)
        with run:
            measured = time_training(run)
    if run.profiler is not None:
        pstats.Stats(run.profiler).strip_dirs().sort_stats("tottime").print_stats(40)
        return
    versions = {package: version(package) for package in ("torch", "numpy", "mpe2")}
    print(json.dumps(asdict(measured) | {"versions": versions}))


if __name__ == "__main__":
    main()
