"""What is learned from which data, and how it is timed: the same for every library. NumPy only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from typing import Any, Protocol

import numpy as np

from benchmarks.work import BUFFER_SIZE, FULL, Work, await_turn, now

LEARNING_RATE = 1e-5
"""So small that the networks stay as they were born: all rounds compute with similar numbers."""
N_QUANTILE, N_COSINE = 32, 64
N_ATOM, V_MIN, V_MAX = 51, -10.0, 10.0
CLIP_NORM = 0.5
"""Of gradients on-policy, where that is the default of two of the three."""
CALL = 8
"""Gradient steps of a call that draws from a replay buffer."""
PIECES, QUICK_PIECES = 6, 2

_Q, _PG, _AC = (replace(FULL[n], learning_rate=LEARNING_RATE) for n in ("dqn", "ppo", "sac"))
JOBS: dict[str, Work] = {
    **dict.fromkeys(("dqn", "qrdqn", "c51", "iqn"), _Q),
    "ppo": _PG,
    "a2c": replace(_PG, rollout=64, batch_size=64, epochs=1),
    **dict.fromkeys(("sac", "td3", "ddpg"), _AC),
}
PEERS: dict[str, tuple[str, ...]] = {
    name: ("tianshou",) if name in ("c51", "iqn") else ("sb3", "tianshou") for name in JOBS
}
OBS_SIZE = {"CartPole-v1": 4, "Pendulum-v1": 3}

Columns = dict[str, np.ndarray]


class Side(Protocol):
    """One algorithm of one library, with data to learn from."""

    def call(self) -> None:
        """The library's own update: what it draws, learns and writes down."""

    def optimizers(self) -> Iterable[Any]: ...


def is_on_policy(job: Work) -> bool:
    return job.rollout > 1


def updates_per_call(job: Work) -> int:
    return job.epochs * (job.rollout // job.batch_size) if is_on_policy(job) else CALL


def piece_of(job: Work) -> int:
    """Updates that are timed together: whole calls, with the same number of entries in the log."""
    return 400 if is_on_policy(job) else 200


def steps_of(job: Work) -> Columns:
    """Random steps, one env after the other: a rollout, or as many as fill the buffer."""
    n, size = job.rollout if is_on_policy(job) else BUFFER_SIZE, OBS_SIZE[job.env_id]
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(n + 1, size)).astype(np.float32)
    discrete = job.env_id == "CartPole-v1"
    action = rng.integers(0, 2, n) if discrete else rng.uniform(-1, 1, (n, 1)).astype(np.float32)
    return {
        "obs": obs[:-1].copy(),
        "action": action,
        "reward": rng.normal(size=n).astype(np.float32),
        "next_obs": obs[1:].copy(),
        "terminated": rng.random(n) < 0.02,
    }


def trained(optimizers: Iterable[Any]) -> tuple[int, int]:
    """Parameters and steps, as torch's optimizers themselves count them."""
    optimizers = list(optimizers)
    groups = [group for optimizer in optimizers for group in optimizer.param_groups]
    sizes = [p.numel() for group in groups for p in group["params"] if p.requires_grad]
    states = [state for optimizer in optimizers for state in optimizer.state.values()]
    return sum(sizes), max((int(state["step"]) for state in states), default=0)


def measured(side: Side, job: Work, quick: bool, turns: bool = False) -> dict[str, Any]:
    """Seconds of a piece of updates, the median of several; the first one is left out.

    With `turns` each piece waits for its turn, as in `work.Turns`.
    """
    if turns:
        await_turn()
    start = now()
    side.call()
    first = now() - start
    spent = []
    for _ in range(1 + (QUICK_PIECES if quick else PIECES)):
        if turns:
            await_turn()
        done, start = trained(side.optimizers())[1], now()
        for _ in range(piece_of(job) // updates_per_call(job)):
            side.call()
        spent.append(now() - start)
    n_parameter, steps = trained(side.optimizers())
    return {
        "seconds": median(clock.wall for clock in spent[1:]),
        "cpu_seconds": median(clock.cpu for clock in spent[1:]),
        "first_call_seconds": first.wall,
        "env_steps": 0,
        "updates": steps - done,
        "n_parameter": n_parameter,
    }
