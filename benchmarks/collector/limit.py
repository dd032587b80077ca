"""What is possible: the schedules of a collector, simulated without any cost of their own."""

from __future__ import annotations

import heapq

from benchmarks.collector.workload import N_ENV, N_SAMPLE, WARM_UP, Lengths, Load, Stream


class _Envs:
    """The durations that the envs and the policy of a real run meet, in the same order."""

    def __init__(self, load: Load, seed: int) -> None:
        envs = range(N_ENV)
        self._infer = Stream(load, "infer", -1, seed=seed)
        self._step = [Stream(load, "step", i, seed=seed) for i in envs]
        self._reset = [Stream(load, "reset", i, seed=seed) for i in envs]
        self._lengths = [Lengths(load, i, seed=seed) for i in envs]
        for stream in self._reset:  # The first resets are over before the clock starts.
            stream.draw()
        self._left = [lengths.draw() for lengths in self._lengths]

    def infer(self) -> float:
        return self._infer.draw()

    def step(self, i: int) -> tuple[float, float]:
        """Seconds of a step, and of the reset after it: zero within an episode."""
        self._left[i] -= 1
        seconds = self._step[i].draw()
        if self._left[i] > 0:
            return seconds, 0.0
        self._left[i] = self._lengths[i].draw()
        return seconds, self._reset[i].draw()


def free_ends(load: Load, n_step: int, seed: int = 0) -> list[float]:
    """When the steps end if no env ever waits: infer, step and at times reset, on and on."""
    envs, ends = _Envs(load, seed), list[float]()
    ready = [(0.0, i) for i in range(N_ENV)]
    while len(ends) < n_step + N_ENV:  # Of the last ones another may end earlier.
        now, i = heapq.heappop(ready)
        inferred = now + envs.infer()
        step, reset = envs.step(i)
        ends.append(inferred + step)
        heapq.heappush(ready, (inferred + step + reset, i))
    return sorted(ends)


def sync_ends(load: Load, n_step: int, seed: int = 0) -> list[float]:
    """The same if all envs wait for the slowest step, but not for those that reset."""
    envs, ends = _Envs(load, seed), list[float]()
    now, ready_at = 0.0, [0.0] * N_ENV
    while len(ends) < n_step:
        now = max(now, min(ready_at))
        running = [i for i in range(N_ENV) if ready_at[i] <= now]
        now += envs.infer()
        steps = {i: envs.step(i) for i in running}
        now += max(step for step, _ in steps.values())
        ends += [now] * len(running)
        for i, (_, reset) in steps.items():
            ready_at[i] = now + reset
    return ends


def seconds(ends: list[float], collects: int) -> float:
    """From the end of the warm-up to the last sample."""
    first, last = WARM_UP * N_SAMPLE, (WARM_UP + collects) * N_SAMPLE
    return ends[last - 1] - ends[first - 1]


def limit_seconds(load: Load, collects: int, seed: int = 0) -> float:
    return seconds(free_ends(load, (WARM_UP + collects) * N_SAMPLE, seed), collects)


def sync_seconds(load: Load, collects: int, seed: int = 0) -> float:
    return seconds(sync_ends(load, (WARM_UP + collects) * N_SAMPLE, seed), collects)
