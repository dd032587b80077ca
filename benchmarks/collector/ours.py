"""Our side: the real managers, `SampleCollector` and buffer around a policy that sleeps."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from queue import Queue
from typing import Any

import numpy as np
import torch

from benchmarks.collector.rigs import Rig
from benchmarks.collector.workload import N_ENV, N_SAMPLE, Infer, Load, SleepEnv
from ding.envs import DingEnvWrapper, create_env_manager
from ding.policy.base import CollectMode
from ding.utils.batch import ByEnv
from ding.worker import create_buffer, create_serial_collector

GUARDED = dict(max_retry=3, retry_type="renew", step_timeout=5.0, reset_timeout=5.0)
"""Retries and limits for the overhead; the flight recorder is on by default."""


class RaceEnv(DingEnvWrapper):
    """Seeds tell a spare env from the env whose place it takes."""

    def __init__(self, load: Load, env: int) -> None:
        self._sleeper = SleepEnv(load, env)
        super().__init__(self._sleeper)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        super().seed(seed, dynamic_seed)
        if seed != self._sleeper.index:
            self._sleeper.become_spare()


def _manager(load: Load, kind: str, options: Mapping[str, Any]) -> Any:
    makers = [partial(RaceEnv, load, i) for i in range(N_ENV)]
    manager = create_env_manager(dict(type=kind, **options), makers)
    manager.seed(0)  # Env i gets the seed i.
    return manager


def _mode(infer: Infer) -> CollectMode:
    settings = dict(n_sample=N_SAMPLE, takes_all_envs=True)

    def forward(obs: ByEnv) -> ByEnv:
        infer()
        return ByEnv(obs.ids, {"action": np.ones(len(obs.ids), dtype=np.int64)})

    def process_transition(obs: Any, output: Any, step: Any) -> dict[str, Any]:
        return {
            "obs": obs,
            "next_obs": step.obs,
            "action": output["action"],
            "reward": step.reward,
            "done": step.done,
        }

    def get_train_sample(steps: Sequence[Any]) -> Sequence[Any]:
        return steps

    def nothing(*_: Any) -> None:
        """It learns nothing and remembers nothing."""

    def get_attribute(name: str) -> Any:
        if name not in settings:
            raise NotImplementedError(name)
        return settings[name]

    return CollectMode(
        forward,
        process_transition,
        get_train_sample,
        nothing,
        get_attribute,
        nothing,
        dict,
        nothing,
    )


def _race(load: Load, infer: Infer, kind: str, manager: Mapping[str, Any], **collector: Any) -> Rig:
    torch.set_num_threads(1)
    worker: Any = create_serial_collector(
        dict(type="sample", **collector), env=_manager(load, kind, manager), policy=_mode(infer)
    )
    buffer = create_buffer(dict(type="naive", replay_buffer_size=20 * N_SAMPLE))

    def collect() -> int:
        samples = worker.collect()
        buffer.push(samples, worker.envstep)
        return len(samples)

    return Rig(collect, worker.close)


def race_bare(load: Load, infer: Infer) -> Rig:
    """A thread per env that sleeps as the policy and the env do, and stores nothing."""
    ended: Queue[int] = Queue()
    over = threading.Event()

    def play(env: SleepEnv) -> None:
        env.reset()
        while not over.is_set():
            infer()
            done = env.step(0)[2]
            ended.put(env.index)
            if done:
                env.reset()

    envs = [SleepEnv(load, i) for i in range(N_ENV)]
    threads = [threading.Thread(target=play, args=(env,), daemon=True) for env in envs]

    def collect() -> int:
        if threads[0].ident is None:  # Not before: they would run ahead while others get ready.
            for thread in threads:
                thread.start()
        return len([ended.get() for _ in range(N_SAMPLE)])

    return Rig(collect, over.set)


def race_base(load: Load, infer: Infer) -> Rig:
    return _race(load, infer, "base", {})


def race_sync(load: Load, infer: Infer) -> Rig:
    return _race(load, infer, "subprocess", {})


def race_async(load: Load, infer: Infer) -> Rig:
    return _race(load, infer, "async_subprocess", dict(wait_num=1), overlap=1)


def race_overlap(load: Load, infer: Infer) -> Rig:
    return _race(load, infer, "async_subprocess", {})


def race_spare(load: Load, infer: Infer) -> Rig:
    return _race(load, infer, "async_subprocess", dict(spare_envs=True))


def _steps(load: Load, kind: str) -> Rig:
    torch.set_num_threads(1)
    manager = _manager(load, kind, GUARDED)
    manager.launch()
    actions = np.ones(N_ENV, dtype=np.int64)

    def step() -> int:
        ids = manager.ready_obs.ids
        return len(manager.step(ByEnv(ids, actions[: len(ids)])).ids)

    return Rig(step, manager.close)


def step_base(load: Load) -> Rig:
    return _steps(load, "base")


def step_sync(load: Load) -> Rig:
    return _steps(load, "subprocess")


def step_async(load: Load) -> Rig:
    return _steps(load, "async_subprocess")
