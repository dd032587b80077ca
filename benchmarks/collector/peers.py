"""The other libraries, as their users drive them. Runs in an interpreter that need not have `ding`.

Libraries without a collector keep their samples in a `Ring`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.collector.rigs import Rig
from benchmarks.collector.workload import N_ENV, N_SAMPLE, Infer, Load, Ring, SleepEnv

_ACTIONS = np.ones(N_ENV, dtype=np.int64)
_TIANSHOU_WAIT = 7


def _makers(load: Load) -> list[Callable[[], SleepEnv]]:
    return [partial(SleepEnv, load, i) for i in range(N_ENV)]


# --- Tianshou ------------------------------------------------------------------------------------


def _tianshou_policy(infer: Infer, needs_state: bool, action_space: Any) -> Any:
    base: Any = import_module("tianshou.algorithm.algorithm_base").Policy
    batch_class: Any = import_module("tianshou.data").Batch

    def forward(self: Any, batch: Any, state: Any = None, **_: Any) -> Any:
        infer()
        n = len(batch.obs)
        # Its asynchronous collector indexes the policy's state, so there must be one.
        memory = np.zeros((n, 1)) if needs_state else None
        return batch_class(act=np.ones(n, dtype=np.int64), state=memory)

    return type("SleepPolicy", (base,), {"forward": forward})(action_space)


def _tianshou(load: Load, infer: Infer, wait_num: int | None) -> Rig:
    envs_module: Any = import_module("tianshou.env")
    data: Any = import_module("tianshou.data")
    envs = envs_module.SubprocVectorEnv(_makers(load), wait_num=wait_num)
    policy = _tianshou_policy(infer, wait_num is not None, SleepEnv(load, 0).action_space)
    collector_class = data.Collector if wait_num is None else data.AsyncCollector
    store = data.VectorReplayBuffer(20 * N_SAMPLE, N_ENV)
    collector = collector_class(policy, envs, store, raise_on_nan_in_buffer=False)
    collector.reset()

    def collect() -> int:
        return int(collector.collect(n_step=N_SAMPLE).n_collected_steps)

    return Rig(collect, envs.close)


def tianshou_sync(load: Load, infer: Infer) -> Rig:
    return _tianshou(load, infer, None)


def tianshou_async(load: Load, infer: Infer) -> Rig:
    return _tianshou(load, infer, _TIANSHOU_WAIT)


def _tianshou_steps(load: Load, kind: str) -> Rig:
    envs_module: Any = import_module("tianshou.env")
    envs = getattr(envs_module, kind)(_makers(load))
    envs.reset()

    def step() -> int:
        _, _, terminated, truncated, _ = envs.step(_ACTIONS)
        done = terminated | truncated
        if done.any():
            envs.reset(np.flatnonzero(done))
        return N_ENV

    return Rig(step, envs.close)


def tianshou_pipe_steps(load: Load) -> Rig:
    return _tianshou_steps(load, "SubprocVectorEnv")


def tianshou_shared_steps(load: Load) -> Rig:
    return _tianshou_steps(load, "ShmemVectorEnv")


# --- Stable-Baselines3 and Gymnasium -------------------------------------------------------------


def _sb3_envs(load: Load) -> Any:
    vec_env: Any = import_module("stable_baselines3.common.vec_env")
    return vec_env.SubprocVecEnv(_makers(load), start_method="fork")


def sb3(load: Load, infer: Infer) -> Rig:
    envs, ring = _sb3_envs(load), Ring(load)
    obs = envs.reset()

    def collect() -> int:
        nonlocal obs
        for _ in range(N_SAMPLE // N_ENV):
            infer()
            following, reward, done, infos = envs.step(_ACTIONS)
            final = following
            if done.any():
                final = following.copy()
                for i in np.flatnonzero(done):
                    final[i] = infos[i]["terminal_observation"]
            ring.push(obs, _ACTIONS, reward, done, final)
            obs = following
        return N_SAMPLE

    return Rig(collect, envs.close)


def sb3_steps(load: Load) -> Rig:
    envs = _sb3_envs(load)
    envs.reset()

    def step() -> int:
        envs.step(_ACTIONS)
        return N_ENV

    return Rig(step, envs.close)


def _gymnasium_envs(load: Load) -> Any:
    vector: Any = import_module("gymnasium.vector")
    mode = vector.AutoresetMode.SAME_STEP
    return vector.AsyncVectorEnv(_makers(load), shared_memory=True, autoreset_mode=mode)


def gymnasium(load: Load, infer: Infer) -> Rig:
    envs, ring = _gymnasium_envs(load), Ring(load)
    obs, _ = envs.reset()

    def collect() -> int:
        nonlocal obs
        for _ in range(N_SAMPLE // N_ENV):
            infer()
            following, reward, terminated, truncated, infos = envs.step(_ACTIONS)
            done, final = terminated | truncated, following
            if done.any():
                final = following.copy()
                for i in np.flatnonzero(done):
                    final[i] = infos["final_obs"][i]
            ring.push(obs, _ACTIONS, reward, done, final)
            obs = following
        return N_SAMPLE

    return Rig(collect, envs.close)


def gymnasium_steps(load: Load) -> Rig:
    envs = _gymnasium_envs(load)
    envs.reset()

    def step() -> int:
        envs.step(_ACTIONS)
        return N_ENV

    return Rig(step, envs.close)


# --- TorchRL -------------------------------------------------------------------------------------


def _torchrl_env(load: Load, i: int) -> Any:
    envs: Any = import_module("torchrl.envs")
    return envs.GymWrapper(SleepEnv(load, i), categorical_action_encoding=True)


def _torchrl_makers(load: Load) -> list[Callable[[], Any]]:
    return [partial(_torchrl_env, load, i) for i in range(N_ENV)]


def _parallel_env(load: Load) -> Any:
    import_module("torch").set_num_threads(1)
    envs: Any = import_module("torchrl.envs")
    return envs.ParallelEnv(N_ENV, _torchrl_makers(load), mp_start_method="fork")


def _torchrl_policy(infer: Infer) -> Callable[[Any], Any]:
    torch: Any = import_module("torch")

    def act(steps: Any) -> Any:
        infer()
        return steps.set("action", torch.ones(steps.batch_size, dtype=torch.int64))

    return act


def _from(collector: Any) -> Rig:
    batches = iter(collector)
    return Rig(lambda: int(next(batches).numel()), collector.shutdown)


def torchrl(load: Load, infer: Infer) -> Rig:
    collectors: Any = import_module("torchrl.collectors")
    return _from(
        collectors.Collector(
            _parallel_env(load),
            _torchrl_policy(infer),
            frames_per_batch=N_SAMPLE,
            total_frames=-1,
            trust_policy=True,
        )
    )


def torchrl_async(load: Load, infer: Infer) -> Rig:
    import_module("torch").set_num_threads(1)
    collectors: Any = import_module("torchrl.collectors")
    return _from(
        collectors.AsyncBatchedCollector(
            _torchrl_makers(load),
            policy=_torchrl_policy(infer),
            frames_per_batch=N_SAMPLE,
            total_frames=-1,
            env_backend="multiprocessing",
        )
    )


def torchrl_steps(load: Load) -> Rig:
    torch: Any = import_module("torch")
    envs = _parallel_env(load)
    steps, actions = envs.reset(), torch.ones(N_ENV, dtype=torch.int64)

    def step() -> int:
        nonlocal steps
        _, steps = envs.step_and_maybe_reset(steps.set("action", actions))
        return N_ENV

    return Rig(step, envs.close)
