"""How many envs shall share a worker process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from ding.utils.errors import ConfigError

_BUDGET_SECONDS = 0.3
_START_SECONDS = 20.0
_STEPS = 20
_CHEAP_STEP = 2e-4
_CHEAP_RESET = 5e-3


def envs_per_worker(
    cfg: Mapping[str, Any], env_fns: Sequence[Callable[[], Any]], in_threads: bool
) -> int:
    """As configured; 'auto' gives every core an equal part of cheap envs, others one each."""
    wanted = cfg["envs_per_worker"]
    if isinstance(wanted, int) and wanted >= 1:
        return wanted
    if wanted != "auto":
        raise ConfigError(f"env.manager.envs_per_worker: 'auto' or a positive int, not {wanted!r}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    share = -(-len(env_fns) // cores)
    if in_threads or share == 1:
        return 1
    return share if _is_cheap(env_fns[0], cfg["context"]) else 1


def _is_cheap(env_fn: Callable[[], Any], context: str) -> bool:
    """Try an env in a process that is thrown away, since it may do anything."""
    mp: Any = get_context(context)
    ours, theirs = mp.Pipe(duplex=False)
    portable = env_fn if context == "fork" else _Pickled(env_fn)
    process = mp.Process(target=_try_out, args=(portable, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(_START_SECONDS) or not ours.recv() or not ours.poll(_BUDGET_SECONDS):
            return False
        step, reset = ours.recv()
        return bool(step < _CHEAP_STEP and reset < _CHEAP_RESET)
    except EOFError:
        return False
    finally:
        process.kill()
        process.join()
        ours.close()


class _Pickled:
    """A factory that reaches a process which is not forked."""

    def __init__(self, env_fn: Callable[[], Any]) -> None:
        self._bytes = cloudpickle.dumps(env_fn)

    def __call__(self) -> Any:
        return cloudpickle.loads(self._bytes)()


def _try_out(env_fn: Callable[[], Any], answer: Connection) -> None:
    answer.send(True)
    env = env_fn()
    env.reset()  # The first one may build the simulator.
    began = time.perf_counter()
    env.reset()
    reset = time.perf_counter() - began
    quickest = float("inf")
    for _ in range(_STEPS):
        action = env.random_action()
        began = time.perf_counter()
        done = env.step(action).done
        quickest = min(quickest, time.perf_counter() - began)
        if done:
            env.reset()
    answer.send((quickest, reset))
