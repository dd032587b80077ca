"""Envs and a policy that cost nothing but time, the same for every library.

A duration is uniform around its nominal value. Every kind of duration of every env has a seeded
stream of its own, so that all libraries, and the simulated limit, meet the very same ones.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

N_ENV = 8
N_SAMPLE = 80
PUBLISHED_COLLECTS = 300
WARM_UP = 2
"""Collects before the clock starts."""


@dataclass(frozen=True)
class Load:
    """What an env and its policy cost, in seconds."""

    name: str
    shape: tuple[int, ...]
    reset: float = 0.0
    step: float = 0.0
    infer: float = 0.0
    dtype: str = "float32"
    episode: int = 500
    """Mean steps of an episode."""
    spread: float = 0.6
    """Durations and lengths lie within this fraction of their mean."""


LOADS = {
    load.name: load
    for load in (
        Load("small", (64,), reset=0.1, step=0.005, infer=0.004),
        Load("middle", (300,), reset=0.5, step=0.01, infer=0.008),
        Load("big", (3000,), reset=2.0, step=0.1, infer=0.02),
        Load("64 floats", (64,)),
        Load("3000 floats", (3000,)),
        Load("4x84x84 bytes", (4, 84, 84), dtype="uint8"),
    )
}


def load_of(name: str, reset_scale: float = 1.0) -> Load:
    load = LOADS[name]
    return replace(load, reset=load.reset * reset_scale)


class Stream:
    """One kind of duration of one env; the policy is env -1."""

    def __init__(self, load: Load, kind: str, env: int, *, seed: int = 0) -> None:
        self._rng = random.Random(f"{seed}/{env}/{kind}")
        self._mean, self._spread = getattr(load, kind), load.spread

    def draw(self) -> float:
        return self._mean * (1 + self._spread * (2 * self._rng.random() - 1))


class Lengths:
    """Steps of the episodes of one env.

    The first ones end at different times, as if the envs had run for long already: also a short run
    then meets resets at their usual rate.
    """

    def __init__(self, load: Load, env: int, *, seed: int = 0) -> None:
        self._stream = Stream(load, "episode", env, seed=seed)
        first = max(1, int(load.episode * (env + 0.5) / N_ENV))
        self._first = first if env < N_ENV else None

    def draw(self) -> int:
        first, self._first = self._first, None
        return first or max(1, int(self._stream.draw()))


class SleepEnv(gym.Env[np.ndarray, Any]):
    """Sleeps instead of computing; observations are a few prepared arrays."""

    def __init__(self, load: Load, env: int) -> None:
        self.load, self.index = load, env
        self.observation_space = gym.spaces.Box(0, 255, load.shape, np.dtype(load.dtype))
        self.action_space = gym.spaces.Discrete(2)
        self._draw_from(env)
        rng = np.random.default_rng(env)
        self._frames = list(rng.integers(0, 255, (4, *load.shape)).astype(load.dtype))
        self._sleeps = load.step > 0
        self._taken, self._left, self._reset_seconds = 0, 0, 0.0

    def _draw_from(self, env: int) -> None:
        self._steps, self._resets = (Stream(self.load, k, env) for k in ("step", "reset"))
        self._lengths = Lengths(self.load, env)

    def become_spare(self) -> None:
        """Be the second env of a pair that take turns: with other durations."""
        self._draw_from(self.index + N_ENV)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, Any]:
        # Some libraries reset twice before the first step; that shall not change the episodes.
        if self._taken or not self._left:
            self._taken, self._left = 0, self._lengths.draw()
            self._reset_seconds = self._resets.draw()
        if self._sleeps:
            time.sleep(self._reset_seconds)
        return self._frames[0], {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, Any]:
        if self._sleeps:
            time.sleep(self._steps.draw())
        self._taken += 1
        self._left -= 1
        return self._frames[self._taken & 3], 1.0, self._left <= 0, False, {}


class Infer:
    """The policy: one sleep per call, for however many envs."""

    def __init__(self, load: Load) -> None:
        self._stream, self._lock = Stream(load, "infer", -1), threading.Lock()
        self._sleeps = load.infer > 0
        self.calls = 0

    def __call__(self) -> None:
        with self._lock:  # Overlapped inference draws from several threads.
            self.calls += 1
            seconds = self._stream.draw()
        if self._sleeps:
            time.sleep(seconds)


class Ring:
    """The least that a collector does with its samples: keep them in arrays.

    For the libraries that offer vector envs but no collector.
    """

    def __init__(self, load: Load, size: int = 20 * N_SAMPLE) -> None:
        self._obs = np.zeros((size, *load.shape), load.dtype)
        self._next_obs = np.zeros_like(self._obs)
        self._action = np.zeros(size, np.int64)
        self._reward = np.zeros(size, np.float32)
        self._done = np.zeros(size, np.bool_)
        self._at = 0

    def push(self, obs: Any, action: Any, reward: Any, done: Any, next_obs: Any) -> None:
        n = len(action)
        start = self._at if self._at + n <= len(self._action) else 0
        at = slice(start, start + n)
        self._obs[at], self._action[at], self._reward[at] = obs, action, reward
        self._done[at], self._next_obs[at] = done, next_obs
        self._at = at.stop
