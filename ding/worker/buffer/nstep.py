"""Targets over several steps, made of stored single steps when they are drawn.

Letters in shapes: B batch, n steps of a chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.rl_utils.adder import terminated
from ding.utils.batch import Batch, take
from ding.worker.buffer.store import Store

_END = ("next_obs", "done", "truncated")
"""Columns of the last step of a chain."""


def stored_nstep(store: Store, slots: np.ndarray, exist: np.ndarray, gamma: float) -> Batch:
    """Stored steps with reward, next_obs, done and discount over their chain, (B, ...) each."""
    columns = store.read(slots[:, 0])
    reward = store.gather("reward", slots.reshape(-1))
    last = slots[:, -1]
    end = {name: store.gather(name, last) for name in _END if name in columns}
    return _summed(columns, {"reward": (reward, gamma)}, end, exist)


def relabelled_nstep(window: Batch, exist: np.ndarray, gammas: Mapping[str, float]) -> Batch:
    """The same of relabelled single steps (B*n, ...), for every reward column that has a gamma.

    A step that relabelling made the end of its episode ends the chain.
    """
    n_row, nstep = exist.shape
    rewards = {name: (window[name], gamma) for name, gamma in gammas.items() if name in window}
    if nstep == 1:
        return _summed(window, rewards, window, exist)
    ended = np.asarray(window["done"]).reshape(n_row, nstep, -1)[:, :, 0].astype(bool)
    before = np.zeros_like(exist)
    before[:, 1:] = np.logical_or.accumulate(ended[:, :-1], axis=1)
    exist = exist & ~before
    last = np.arange(n_row) * nstep + exist.sum(axis=1) - 1
    columns = take(window, slice(0, None, nstep))
    end = take({name: window[name] for name in _END if name in window}, last)
    return _summed(columns, rewards, end, exist)


def with_discount(columns: Batch, gamma: float | None) -> Batch:
    """Add `discount` to single steps, or to sequences (B, T) of them: 0 where an episode
    terminated, else `gamma`, or the `value_gamma` that a step brings."""
    if gamma is None or "discount" in columns or not columns.keys() >= {"reward", "done"}:
        return columns
    lasting = columns.get("value_gamma", np.float32(gamma))
    return {**columns, "discount": ~terminated(columns) * lasting}


def with_one_step(steps: Batch, chains: Batch, gamma: float) -> Batch:
    """Sums over chains, beside them reward_1, next_obs_1 and discount_1 of their first steps."""
    over = terminated(steps).reshape(len(steps["reward"]), -1)[:, 0]
    return {
        **chains,
        "reward_1": steps["reward"],
        "next_obs_1": steps["next_obs"],
        "discount_1": (~over * np.float32(gamma)).astype(np.float32),
    }


def _summed(
    columns: Batch, rewards: Mapping[str, tuple[Any, float]], end: Batch, exist: np.ndarray
) -> Batch:
    over = terminated(end).reshape(len(exist), -1)[:, 0]
    n_step = exist.sum(axis=1)
    made = {"next_obs": end["next_obs"], "done": over}
    for name, (reward, gamma) in rewards.items():
        made[name] = _discounted_sum(reward, exist, gamma)
        discount = "discount" if name == "reward" else f"{name}_discount"
        made[discount] = (~over * np.power(float(gamma), n_step)).astype(np.float32)
    return {**{k: column for k, column in columns.items() if k != "truncated"}, **made}


def _discounted_sum(reward: np.ndarray, exist: np.ndarray, gamma: float) -> np.ndarray:
    reward = reward.reshape(*exist.shape, *reward.shape[1:])
    powers = np.power(gamma, np.arange(exist.shape[1])) * exist
    weighted = reward * powers.reshape(*powers.shape, *[1] * (reward.ndim - 2))
    return weighted.sum(axis=1).astype(reward.dtype)
