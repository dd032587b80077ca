"""What one coordinator costs; prints what it measured as a JSON line.

python -m benchmarks.coordinator_work simulated dqn 2000            # a chunk per collector in 5 s
python -m benchmarks.coordinator_work simulated ppo 500 --at-once   # as many as it can take
python -m benchmarks.coordinator_work simulated dqn 2000 --profile  # where the time goes
python -m benchmarks.coordinator_work calls 8                       # to that many Ray actors
python -m benchmarks.coordinator_work waiting 2000                  # for one of so many Ray calls
"""

from __future__ import annotations

import argparse
import cProfile
import heapq
import json
import math
import pickle
import pstats
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import numpy as np

from ding.config import override
from ding.entry.parallel import ParallelRun
from ding.parallel.backend import Backend, Call, Factory
from ding.utils.limits import Limits
from dizoo.classic_control.cartpole.config import cartpole_dqn_config, cartpole_ppo_config

CHUNK = 256
PACE = 5.0
"""Seconds that a collector takes for a chunk, half as long to half as long again."""
UPDATE_SECONDS = 0.0005
"""One update for a chunk is the least a config can ask for: the learner must not be the limit."""
CALL_SECONDS = 0.002
"""Of a call to the buffer and of all others, with the way there and back."""
METADATA = 1000
"""Bytes of an answer that the coordinator reads. Chunks and weights it only hands on, unread."""


class OverError(Exception):
    """The time is up."""


class Fake(Backend):
    """A backend whose services do nothing but answer in time."""

    def __init__(self, warm_up: float, seconds: float, *, at_once: bool) -> None:
        self._at_once = at_once
        self._due: list[tuple[float, int, Call]] = []
        self._number, self._random = count(), random.Random(0)
        self._padding = "x" * METADATA
        self._train_iter = 0
        self._from = time.monotonic() + warm_up
        self._until = self._from + seconds
        self.on_start: Callable[[], None] | None = None
        """Called when the warm-up is over."""
        self.lags: list[float] = []
        """Of the chunks since then: seconds from their arrival until somebody looked at them."""

    def spawn(self, name: str, factory: Factory, role: str = "") -> Any:
        return name

    def call(self, service: Any, method: str, *args: Any) -> Call:
        told, seconds = self._answer(method, args)
        small = pickle.dumps(told | {"padding": self._padding})
        due = time.monotonic() + (0.0 if self._at_once else seconds)
        call = Call(service, method, (due, told), small)
        heapq.heappush(self._due, (due, next(self._number), call))
        return call

    def _answer(self, method: str, args: tuple[Any, ...]) -> tuple[dict[str, Any], float]:
        """What a service says to this, and how long that takes."""
        if method == "collect":
            n = args[1]
            told = {"env_steps": n, "dropped_steps": 0, "samples": n}
            return told, PACE * self._random.uniform(0.5, 1.5)
        if method in ("learn", "learn_together"):
            n = args[1][1]["batches"] if method == "learn" else 10
            self._train_iter += n
            return {"train_iter": self._train_iter, "priorities": []}, n * UPDATE_SECONDS
        if method == "draw":
            return {"batches": args[0]}, CALL_SECONDS
        if method == "evaluate":
            history = {"train_iter": args[1], "env_step": args[2], "reward_mean": 0.0}
            state = {"history": [history], "best": 0.0}
            return {"stop": False, "returns": [0.0], "state": state}, PACE
        return {"train_iter": self._train_iter, "saved": True}, CALL_SECONDS

    def wait(self, calls: Sequence[Call], timeout: float) -> list[Call]:
        if self._due:
            timeout = min(timeout, self._due[0][0] - time.monotonic())
        if timeout > 0:
            time.sleep(timeout)
        now, over = time.monotonic(), []
        if now >= self._until:
            raise OverError
        if now >= self._from and self.on_start is not None:
            self.on_start()
            self.on_start = None
        while self._due and self._due[0][0] <= now:
            over.append(heapq.heappop(self._due)[2])
        return over

    def result(self, call: Call) -> Any:
        if call.method == "collect" and self.on_start is None:
            self.lags.append(time.monotonic() - call.large[0])
        return pickle.loads(call.small)

    def kill(self, service: Any) -> None:
        raise AssertionError("nobody hangs here")

    def close(self) -> None:
        pass


def simulated(policy: str, collectors: int, args: argparse.Namespace) -> dict[str, Any]:
    """The real coordinator and all that a run does around it, with services that are not there."""
    fake = Fake(1.0 if args.at_once else 2 * PACE, args.seconds, at_once=args.at_once)
    marks: list[tuple[float, float, int, int]] = []
    profile = cProfile.Profile()
    with ParallelRun(configs(policy, collectors), 0, Limits(), backend=fake) as run:

        def mark() -> None:
            ledger = run.coordinator.ledger
            counts = (ledger.chunks.stored, ledger.env_steps)
            marks.append((time.monotonic(), time.process_time(), *counts))
            if args.profile:
                profile.enable()

        fake.on_start = mark
        with suppress(OverError):
            run.train()
        profile.disable()
        mark()
    if args.profile:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    seconds, cpu, stored, env_steps = (b - a for a, b in zip(*marks, strict=True))
    lags = np.array(fake.lags or [args.seconds])  # none: not one was looked at in that time
    return {
        "chunks_per_s": len(fake.lags) / seconds,
        "stored_per_s": stored / seconds,
        "cpu_share": cpu / seconds,
        "cpu_ms_per_chunk": 1000 * cpu / max(stored, 1),
        "cpu_us_per_env_step": 1e6 * cpu / max(env_steps, 1),
        "lag_ms": {
            "mean": 1000 * float(lags.mean()),
            "p99": 1000 * float(np.percentile(lags, 99)),
            "max": 1000 * float(lags.max()),
        },
    }


def configs(policy: str, collectors: int) -> list[Any]:
    config = {"dqn": cartpole_dqn_config, "ppo": cartpole_ppo_config}[policy]
    changes = {
        "exp_name": "run",
        "env.collector_env_num": 1,
        "env.stop_value": 1e9,
        "policy.collect.collector.collector_num": collectors,
        "policy.collect.n_sample": CHUNK * (collectors if policy == "ppo" else 1),
    }
    if policy == "dqn":
        changes["policy.learn.update_per_collect"] = 1
    return [override(config.main_config, changes), config.create_config]


class Echo:
    """A service that answers at once, with a large and a small part as a collector's."""

    def __init__(self, size: int) -> None:
        self._large = np.zeros(size, dtype=np.uint8)

    def collect(self) -> tuple[Any, Any]:
        return self._large, {"env_steps": CHUNK, "padding": "x" * METADATA}

    def sleep(self, seconds: float) -> tuple[Any, Any]:
        time.sleep(seconds)
        return None, {}


@contextmanager
def ray() -> Iterator[Any]:
    from ding.parallel.ray_backend import RayBackend

    backend = RayBackend.here()
    try:
        yield backend
    finally:
        backend.close()


def calls(actors: int, args: argparse.Namespace) -> dict[str, Any]:
    """One call under way for each, as the coordinator does it."""
    with ray() as backend:
        services = [backend.spawn(f"echo{i}", partial(Echo, args.size)) for i in range(actors)]
        busy = {backend.call(service, "collect") for service in services}
        marks: list[tuple[float, float, int]] = []
        n, next_mark = 0, math.inf
        while len(marks) < 2:
            if time.monotonic() >= next_mark or (not marks and n >= 100 * actors):
                marks.append((time.monotonic(), time.process_time(), n))
                next_mark = time.monotonic() + args.seconds
            for call in backend.wait(list(busy), 1.0):
                busy.remove(call)
                backend.result(call)
                busy.add(backend.call(call.service, "collect"))
                n += 1
    seconds, cpu, done = (b - a for a, b in zip(*marks, strict=True))
    return {"calls_per_s": done / seconds, "cpu_ms_per_call": 1000 * cpu / done}


def waiting(n: int, args: argparse.Namespace) -> dict[str, Any]:
    """What it takes to look which of `n` calls are over when one is."""
    with ray() as backend:
        first = backend.spawn("first", partial(Echo, 0))
        backend.result(backend.call(first, "collect"))
        slow = backend.spawn("slow", partial(Echo, 0))
        open_calls = [backend.call(slow, "sleep", 3600.0) for _ in range(n - 1)]
        seconds = []
        for _ in range(20):
            over = backend.call(first, "collect")
            backend.result(over)
            began = time.process_time()
            assert backend.wait([*open_calls, over], 1.0) == [over]
            seconds.append(time.process_time() - began)
    return {"cpu_ms_per_wait": 1000 * median(seconds)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=("simulated", "calls", "waiting"))
    parser.add_argument("what", nargs="+", help="a policy and collectors, actors, or calls")
    parser.add_argument("--at-once", action="store_true", help="all answers come at once")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--size", type=int, default=16_000, help="bytes of a chunk")
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    if args.case == "simulated":
        found = simulated(args.what[0], int(args.what[1]), args)
    else:
        found = {"calls": calls, "waiting": waiting}[args.case](int(args.what[0]), args)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
