"""The peer's side of the same work, by Stable-Baselines3. Prints one JSON line.

Runs in an interpreter of its own that need not have `ding`. Envs come from `make_vec_env`, as its
users make them, so episodes are counted here as well.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

from benchmarks import work
from benchmarks.work import NOTHING, Clock, Turns, Work, now, work_of


def build(name: str, job: Work) -> Any:
    sb3: Any = import_module("stable_baselines3")
    env_util: Any = import_module("stable_baselines3.common.env_util")
    env = env_util.make_vec_env(job.env_id, n_envs=job.n_env, seed=0)
    shared: dict[str, Any] = dict(
        policy="MlpPolicy",
        env=env,
        learning_rate=job.learning_rate,
        batch_size=job.batch_size,
        gamma=work.GAMMA,
        seed=0,
        device="cpu",
    )
    off_policy: dict[str, Any] = dict(
        buffer_size=work.BUFFER_SIZE,
        learning_starts=job.warm_up,
        train_freq=1,
        gradient_steps=1,
    )
    hidden = list(job.hidden)
    if name == "dqn":
        return sb3.DQN(
            **shared,
            **off_policy,
            target_update_interval=work.TARGET_FREQ,
            exploration_fraction=work.EPS_STEPS / job.env_steps,
            exploration_final_eps=work.EPS_END,
            max_grad_norm=work.DQN_CLIP_NORM,
            policy_kwargs=dict(net_arch=hidden),
        )
    if name == "sac":
        net = dict(net_arch=hidden)
        return sb3.SAC(**shared, **off_policy, tau=work.TARGET_THETA, policy_kwargs=net)
    return sb3.PPO(
        **shared,
        n_steps=job.rollout // job.n_env,
        n_epochs=job.epochs,
        gae_lambda=work.GAE_LAMBDA,
        ent_coef=work.ENTROPY_WEIGHT,
        policy_kwargs=dict(net_arch=dict(pi=hidden, vf=hidden), activation_fn=nn.Tanh),
    )


def time_training(model: Any, job: Work, log_dir: str | None, turns: Turns) -> Clock:
    if log_dir is not None:
        logger: Any = import_module("stable_baselines3.common.logger")
        model.set_logger(logger.configure(log_dir, ["tensorboard"]))
    waited = NOTHING

    def after_step(*_: Any) -> bool:
        nonlocal waited
        # The turn of the last part is not over before its updates.
        if model.num_timesteps < job.env_steps:
            waited += turns.wait(model.num_timesteps) or NOTHING
        return True

    turns.wait(0)
    start = now()
    model.learn(job.env_steps, callback=after_step)
    return now() - start - waited


def time_collecting(model: Any, job: Work, turns: Turns) -> Clock:
    """`collect_rollouts` alone, with the policy as it was born."""
    turns.wait(0)
    _, callback = model._setup_learn(job.env_steps, None)

    def collect() -> None:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)

    for _ in range(work.COLLECT_WARM_UP):
        collect()
    waited, start = NOTHING, now()
    for done in range(job.env_steps // job.rollout):
        waited += turns.wait(done * job.rollout) or NOTHING
        collect()
    return now() - start - waited


def _trained(model: Any) -> Iterable[nn.Parameter]:
    """Parameters without those of target networks."""
    if hasattr(model, "q_net"):
        return model.q_net.parameters()
    if hasattr(model, "critic"):
        return [*model.actor.parameters(), *model.critic.parameters()]
    return model.policy.parameters()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("ppo", "dqn", "sac", "collect"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tensorboard", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", action="store_true", help="take turns, see work.Turns")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    job = work_of(args.name, args.quick)
    model = build(args.name, job)
    collecting, turns = args.name == "collect", Turns(job, args.turns)
    with tempfile.TemporaryDirectory() as directory:
        log_dir = directory if args.tensorboard else None
        if collecting:
            spent = time_collecting(model, job, turns)
        else:
            spent = time_training(model, job, log_dir, turns)
    packages = ("stable-baselines3", "torch", "numpy", "gymnasium")
    measured = {
        "seconds": spent.wall,
        "cpu_seconds": spent.cpu,
        "env_steps": job.env_steps if collecting else model.num_timesteps,
        "updates": 0 if collecting else _updates(model, job),
        "n_parameter": sum(p.numel() for p in _trained(model)),
        "versions": {p: version(p) for p in packages},
    }
    print(json.dumps(measured))


def _updates(model: Any, job: Work) -> int:
    # The peer counts passes over the rollout on-policy, and updates off-policy.
    return model._n_updates * (job.rollout // job.batch_size if job.rollout > 1 else 1)


if __name__ == "__main__":
    main()
