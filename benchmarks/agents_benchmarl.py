"""BenchMARL's QMIX and MAPPO (on TorchRL) for `benchmarks.agents`. Prints one JSON line.

By an interpreter that has mpe2, benchmarl, torchrl and tensordict; measured with 1.5.2, 0.12.0 and
0.12.0 (BenchMARL 1.5.2 cannot be imported with TorchRL 0.14). Nothing is logged or evaluated.
BenchMARL's own task is that of `pettingzoo.mpe`, which is `mpe2` now.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from benchmarl.algorithms import MappoConfig, QmixConfig
from benchmarl.environments.pettingzoo.common import PettingZooClass
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.experiment.callback import Callback
from benchmarl.models.mlp import MlpConfig
from mpe2 import simple_spread_v3
from torch import nn
from torchrl.envs import PettingZooWrapper

from benchmarks import agents_work as spec
from benchmarks.agents_work import EPISODE, N_AGENT, job_of
from benchmarks.work import NOTHING, Turns, Work, now


class Spread(PettingZooClass):
    def get_env_fun(self, num_envs: int, *_: Any, **__: Any) -> Callable[[], Any]:
        def make() -> Any:
            env = simple_spread_v3.parallel_env(N=N_AGENT, max_cycles=EPISODE)
            return PettingZooWrapper(env, categorical_actions=True, return_state=True)

        return make


class Waiting(Callback):
    """Takes turns, from the first env step on, and counts."""

    def __init__(self, turns: Turns) -> None:
        super().__init__()
        self._turns, self.waited, self.steps, self.updates = turns, NOTHING, 0, 0

    def on_batch_collected(self, batch: Any) -> None:
        self.steps += batch.numel()

    def on_train_step(self, batch: Any, group: str) -> None:
        self.updates += 1

    def on_train_end(self, training_td: Any, group: str) -> None:
        self.waited += self._turns.wait(self.steps) or NOTHING


def settings(job: Work) -> ExperimentConfig:
    config = ExperimentConfig.get_from_yaml()
    config.prefer_continuous_actions = False
    config.gamma, config.lr = spec.GAMMA, job.learning_rate
    config.clip_grad_norm, config.clip_grad_val = True, spec.CLIP_NORM
    config.polyak_tau = spec.TARGET_THETA
    config.exploration_eps_init, config.exploration_eps_end = 1.0, spec.EPS_END
    config.exploration_anneal_frames = spec.EPS_STEPS
    config.max_n_frames = job.env_steps
    config.on_policy_collected_frames_per_batch = job.rollout
    config.on_policy_n_envs_per_worker = job.n_env
    config.on_policy_n_minibatch_iters = job.epochs
    config.on_policy_minibatch_size = job.batch_size
    config.off_policy_collected_frames_per_batch = job.rollout
    config.off_policy_n_envs_per_worker = job.n_env
    config.off_policy_n_optimizer_steps = job.epochs
    config.off_policy_train_batch_size = job.batch_size
    config.off_policy_memory_size = spec.BUFFER
    config.evaluation, config.loggers, config.create_json = False, [], False
    config.save_folder = str(Path.cwd())
    return config


def algorithm(name: str) -> Any:
    if name == "qmix":
        config: Any = QmixConfig.get_from_yaml()
        config.mixing_embed_dim = spec.MIXING
        return config
    config = MappoConfig.get_from_yaml()
    config.clip_epsilon, config.entropy_coef = spec.CLIP, spec.ENTROPY_WEIGHT
    config.lmbda = spec.GAE_LAMBDA
    return config


def layers(job: Work) -> MlpConfig:
    return MlpConfig(num_cells=list(job.hidden), layer_class=nn.Linear, activation_class=nn.ReLU)


def train(name: str, job: Work, turns: Turns) -> dict[str, Any]:
    callback = Waiting(turns)
    experiment = Experiment(
        task=Spread(name="SIMPLE_SPREAD", config={"max_cycles": EPISODE}),
        algorithm_config=algorithm(name),
        model_config=layers(job),
        critic_model_config=layers(job),
        seed=0,
        config=settings(job),
        callbacks=[callback],
    )
    turns.wait(0)
    start = now()
    experiment.run()
    spent = now() - start - callback.waited
    losses = experiment.losses.values()
    parameters = {id(p): p for loss in losses for p in loss.parameters() if p.requires_grad}
    return {
        "seconds": spent.wall,
        "cpu_seconds": spent.cpu,
        "env_steps": callback.steps,
        "updates": callback.updates,
        "n_parameter": sum(p.numel() for p in parameters.values()),
        "versions": {p: version(p) for p in ("torch", "torchrl", "benchmarl", "mpe2")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("qmix", "mappo"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", action="store_true", help="take turns, see work.Turns")
    args = parser.parse_args()
    torch.set_num_threads(1)
    job = job_of(args.name, args.quick)
    print(json.dumps(train(args.name, job, Turns(job, args.turns))))


if __name__ == "__main__":
    main()
