"""The work that both sides do, stated once. Imports neither side: each has its own interpreter."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class Work:
    env_id: str
    n_env: int
    env_steps: int
    warm_up: int = 0
    """Random steps before the first update."""
    batch_size: int
    learning_rate: float
    hidden: tuple[int, ...]
    """Hidden layers of every network."""
    rollout: int = 1
    """Env steps of all envs together between updates."""
    epochs: int = 1
    """Passes over a rollout."""
    turns: int = 20
    """Parts in which the work is done, so that the sides can take turns."""

    @property
    def updates(self) -> int:
        if self.rollout == 1:
            return self.env_steps - self.warm_up
        return self.env_steps // self.rollout * self.epochs * (self.rollout // self.batch_size)


GAMMA = 0.99
GAE_LAMBDA = 0.95
ENTROPY_WEIGHT = 0.01
BUFFER_SIZE = 100_000
TARGET_FREQ, TARGET_THETA = 100, 0.005
EPS_END, EPS_STEPS = 0.05, 3000
DQN_CLIP_NORM = 10.0

FULL = {
    "ppo": Work(
        env_id="CartPole-v1",
        n_env=8,
        env_steps=98 * 1024,
        batch_size=256,
        learning_rate=1e-3,
        hidden=(64, 64),
        rollout=1024,
        epochs=4,
        turns=14,
    ),
    "dqn": Work(
        env_id="CartPole-v1",
        n_env=1,
        env_steps=12_000,
        warm_up=1000,
        batch_size=128,
        learning_rate=5e-4,
        hidden=(128, 128, 64),
    ),
    "sac": Work(
        env_id="Pendulum-v1",
        n_env=1,
        env_steps=2000,
        warm_up=400,
        batch_size=256,
        learning_rate=1e-3,
        hidden=(256, 256),
    ),
}
FULL["collect"] = replace(FULL["ppo"], env_steps=60 * 1024, turns=12)

QUICK_STEPS = {"ppo": 20 * 1024, "dqn": 4000, "sac": 1200, "collect": 20 * 1024}
COLLECT_WARM_UP = 4
"""Rollouts collected before the clock starts."""


QUICK_TURNS = 4


def work_of(name: str, quick: bool = False) -> Work:
    if not quick:
        return FULL[name]
    return replace(FULL[name], env_steps=QUICK_STEPS[name], turns=QUICK_TURNS)


@dataclass(frozen=True)
class Clock:
    """Seconds on the wall, and those that this process had a core."""

    wall: float
    cpu: float

    def __add__(self, other: Clock) -> Clock:
        return Clock(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: Clock) -> Clock:
        return Clock(self.wall - other.wall, self.cpu - other.cpu)


NOTHING = Clock(0.0, 0.0)


def now() -> Clock:
    return Clock(time.perf_counter(), time.process_time())


class Turns:
    """Stops at equal parts of the work until it is this process's turn again.

    The speed of a machine that is shared with others changes from second to second: in turns that
    are short, both sides see the same good and bad times.
    """

    def __init__(self, job: Work, taken: bool) -> None:
        self._part, self._taken, self._next = job.env_steps // job.turns, taken, 0

    def wait(self, env_steps: int) -> Clock | None:
        """What was waited, if these steps complete a part."""
        if not self._taken or env_steps < self._next:
            return None
        self._next += self._part
        return await_turn()


def await_turn() -> Clock:
    """Say that a part is done and wait to be told to go on; gives what was waited."""
    start = now()
    print("turn", flush=True)
    if not sys.stdin.readline():
        raise SystemExit("nobody is waiting any more")
    return now() - start
