"""Which step follows which: n-step samples and sequences from a ring of single steps.

The steps of several envs may be mixed in any way if rows carry `env_id`; without it, successive
rows are successive steps. `done` (or `end`, the last of a contiguous piece) ends a chain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ding.utils.batch import Batch
from ding.worker.buffer.store import Store


class Links:
    def __init__(self, size: int) -> None:
        self.next = np.zeros(size, np.int64)
        """For each slot how many rows later the next step of the same episode came; 0: never."""
        self.last: dict[int, int] = {}
        """Serial number of the newest step of each env whose episode goes on."""

    def add(self, columns: Batch, serial: int, n: int) -> None:
        envs = columns.get("env_id")
        ended = np.asarray(columns["done"]).reshape(n, -1)[:, 0].astype(bool)
        if "end" in columns:
            ended = ended | np.asarray(columns["end"]).astype(bool)
        size = len(self.next)
        self.next[(serial + np.arange(n)) % size] = 0
        names = np.zeros(n, np.int64) if envs is None else np.asarray(envs).reshape(-1)
        for env in np.unique(names).tolist():
            steps = serial + np.flatnonzero(names == env)
            goes_on = ~ended[steps - serial]
            gaps = np.diff(steps) * goes_on[:-1]
            self.next[steps[:-1] % size] = gaps
            before = self.last.pop(env, None)
            if before is not None and before + size > steps[0]:
                self.next[before % size] = steps[0] - before
            if goes_on[-1]:
                self.last[env] = int(steps[-1])

    def chains(self, serials: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """(B, n) serials of rows and their successors, and which exist; others repeat the last."""
        steps = np.repeat(serials[:, None], n, axis=1)
        exist = np.ones((len(serials), n), bool)
        for k in range(1, n):
            gap = self.next[steps[:, k - 1] % len(self.next)]
            exist[:, k] = exist[:, k - 1] & (gap > 0)
            steps[:, k] = steps[:, k - 1] + np.where(exist[:, k], gap, 0)
        return steps, exist

    def restore(self, links: np.ndarray, slots: np.ndarray, last: dict[int, int]) -> None:
        self.next[slots] = links
        self.last = dict(last)


def nstep_rows(store: Store, links: Links, serials: np.ndarray, nstep: int, gamma: float) -> Batch:
    """reward, next_obs, done and discount over up to `nstep` steps, never beyond an episode."""
    steps, exist = links.chains(serials, nstep)
    slots = steps % store.size
    n_used = exist.sum(axis=1)
    last = slots[:, -1]
    reward = store.gather("reward", slots.reshape(-1))
    reward = reward.reshape(*slots.shape, *reward.shape[1:])
    powers = np.power(gamma, np.arange(nstep)) * exist
    weighted = reward * powers.reshape(*powers.shape, *[1] * (reward.ndim - 2))
    done = _terminated(store, last)
    return {
        "reward": weighted.sum(axis=1).astype(reward.dtype),
        "next_obs": store.gather("next_obs", last),
        "done": done,
        "discount": (~done * np.power(float(gamma), n_used)).astype(np.float32),
    }


def _terminated(store: Store, slots: np.ndarray) -> Any:
    done = np.asarray(store.gather("done", slots)).reshape(len(slots), -1)[:, 0].astype(bool)
    truncated = store.view("truncated")
    return done if truncated is None else done & ~truncated[slots].astype(bool)
