"""Steps to training samples: n-step returns, advantages, unrolled pieces.

`nstep_transitions` works on flat columns: trajectories of several envs one after the other, each in
order of time. The `get_*` functions take the rows of one trajectory (a list of dicts, or `Rows`)
and never change them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ding.rl_utils.established.gae import gae, gae_data
from ding.rl_utils.gae import flat_advantages
from ding.rl_utils.scan import ROWS, kernels
from ding.utils.batch import Batch, Rows, columns_of, concat, length, stack, take, tree_map, unstack
from ding.utils.errors import nearest

LAST_FN_TYPES = ("last", "drop", "null_padding")


def nstep_transitions(steps: Batch, nstep: int, gamma: float) -> Batch:
    """A transition per step: the reward of up to `nstep` steps, the obs after them, `discount`.

    Columns obs, action, reward, next_obs, done, `truncated` (ended by a limit only) and `end` (last
    row of a contiguous piece). The result's `done` is termination; `discount` is 0 there, else
    gamma to the number of steps used.
    """
    over = terminated(steps)
    if nstep == 1:
        return {**steps, "done": over, "discount": ~over * np.float32(gamma)}
    if nstep < 1:
        raise ValueError(f"nstep must be at least 1, got {nstep}")
    last = _last_used(steps["end"], nstep)
    done = over[last]
    n_used = last - np.arange(len(over)) + 1
    return {
        **steps,
        "reward": _discounted_sums(steps["reward"], last, nstep, gamma),
        "next_obs": take(steps["next_obs"], last),
        "done": done,
        "discount": (~done * np.power(float(gamma), n_used)).astype(np.float32),
    }


def _discounted_sums(reward: np.ndarray, last: np.ndarray, nstep: int, gamma: float) -> np.ndarray:
    """Sum of the rewards from each row to its `last`, discounted, float32."""
    powers = np.power(gamma, np.arange(nstep)).astype(np.float32)
    module = kernels(len(reward), ROWS)
    if module is not None and reward.ndim == 1 and reward.dtype == np.float32:
        return module.nstep_sums(np.ascontiguousarray(reward), last, powers)
    n_more = (last - np.arange(len(last))).reshape(-1, *[1] * (reward.ndim - 1))
    total = reward.astype(np.result_type(reward.dtype, np.float32))
    for k in range(1, nstep):
        more, sums = powers[k] * reward[k:], total[:-k]
        np.add(sums, more, out=sums, where=n_more[:-k] >= k)
    return total.astype(np.float32, copy=False)


def terminated(steps: Mapping[str, Any], ignore_done: bool = False) -> np.ndarray:
    """Flags of the ends of episodes themselves: `done`, and not `truncated` by a limit only."""
    done = np.asarray(steps["done"]).astype(bool, copy=False)
    if ignore_done:
        return np.zeros_like(done)
    truncated = steps.get("truncated")
    return done if truncated is None else done & ~np.asarray(truncated).astype(bool, copy=False)


def _last_used(end: np.ndarray, nstep: int) -> np.ndarray:
    """For each row the last row of its n-step window, which `end` cuts short."""
    row = np.arange(len(end))
    cuts = np.append(np.flatnonzero(end[:-1]), len(end) - 1)
    return np.minimum(row + nstep - 1, cuts[np.searchsorted(cuts, row)])


def _windows(reward: np.ndarray, last: np.ndarray, nstep: int) -> np.ndarray:
    """(n, nstep, ...): the rewards from each row to its `last`, zeros after."""
    index = np.arange(len(last))[:, None] + np.arange(nstep)
    inside = index <= last[:, None]
    window = reward[np.minimum(index, len(last) - 1)]
    return np.where(inside.reshape(inside.shape + (1,) * (window.ndim - 2)), window, 0)


def _with_columns(data: Sequence[Any], new: Batch) -> list[Any]:
    """The rows of `data` plus (or with other) columns, as the kind of list that came in."""
    if isinstance(data, Rows):
        return Rows({**data.columns, **new})
    return [{**row, **more} for row, more in zip(data, unstack(new), strict=True)]


def _column(data: Sequence[Any], key: str) -> np.ndarray:
    return data.columns[key] if isinstance(data, Rows) else stack([row[key] for row in data])


def _keys(data: Sequence[Any]) -> Any:
    return data.columns.keys() if isinstance(data, Rows) else data[0].keys()


def get_gae(
    data: Sequence[Any], last_value: Any, gamma: float, gae_lambda: float, cuda: bool = False
) -> list[Any]:
    """Rows (value, reward, done, optional traj_flag and truncated) with their advantage `adv`.

    `last_value` is the value after the last row. `cuda` is accepted for older callers: NumPy is
    faster here.
    """
    if not len(data):
        return []
    value, reward, done = (_column(data, key) for key in ("value", "reward", "done"))
    over = done.reshape(len(done), -1)[:, 0].astype(bool)
    last = np.asarray(torch.as_tensor(last_value).detach().cpu(), dtype=np.float32)
    next_value = np.concatenate([value[1:], last.reshape(1, *value.shape[1:])])
    flag = _column(data, "traj_flag").astype(bool) if "traj_flag" in _keys(data) else over
    if "truncated" in _keys(data) and _column(data, "truncated").reshape(len(done), -1)[-1, 0]:
        # The value after a time limit is known for the last row only.
        over = np.append(over[:-1], False)
    if value.size == reward.size == len(done):
        columns = reward.reshape(-1), value.reshape(-1), next_value.reshape(-1)
        decay = np.where(flag.reshape(-1), 0.0, gamma * gae_lambda)
        adv = flat_advantages(*columns, discount=np.where(over, 0.0, gamma), decay=decay)
        adv = adv.reshape(value.shape)
    else:
        tensors = [torch.as_tensor(c) for c in (value, next_value, reward, over, flag)]
        adv = gae(gae_data(*tensors), gamma, gae_lambda).numpy()
    return _with_columns(data, {"adv": adv})


def get_gae_with_default_last_value(
    data: Sequence[Any], done: bool, gamma: float, gae_lambda: float, cuda: bool = False
) -> list[Any]:
    """`get_gae` with last value zero when done; else the last row is given up for its value."""
    if not len(data):
        return []
    last_value = np.asarray(_column(data, "value")[-1])
    if done:
        return get_gae(data, np.zeros_like(last_value), gamma, gae_lambda, cuda)
    kept = data[:-1] if isinstance(data, list) else list(data)[:-1]
    return get_gae(kept, last_value, gamma, gae_lambda, cuda)


def get_nstep_return_data(
    data: Sequence[Any],
    nstep: int,
    cum_reward: bool = False,
    correct_terminate_gamma: bool = True,
    gamma: float = 0.99,
) -> list[Any]:
    """Rows whose reward, next_obs and done look `nstep` ahead; with nstep 1 they are as they came.

    The reward becomes the vector of `nstep` rewards (zeros after the end), or their discounted sum.
    `value_gamma` is the discount of the value after the steps used. With a `truncated` key the new
    `done` is termination only.
    """
    truncates = len(data) > 0 and "truncated" in _keys(data)
    if not len(data) or (nstep == 1 and not truncates):
        return data if isinstance(data, list) else list(data)
    done = _column(data, "done").reshape(len(data), -1)[:, 0].astype(bool)
    flags: Batch = {"done": done}
    if truncates:
        flags["truncated"] = _column(data, "truncated").reshape(len(data), -1)[:, 0]
    over = terminated(flags)
    if nstep == 1:
        return _with_columns(data, {"done": over})
    last = _last_used(done, nstep)
    reward = _column(data, "reward").astype(np.float32).reshape(len(data), -1)[:, 0]
    reward = _windows(reward, last, nstep)
    new: Batch = {"reward": reward, "done": over[last]}
    if cum_reward:
        new["reward"] = (reward @ np.power(gamma, np.arange(nstep))).astype(np.float32)
    if correct_terminate_gamma:
        n_used = last - np.arange(len(data)) + 1
        new["value_gamma"] = np.power(float(gamma), n_used).astype(np.float32)
    if isinstance(data, Rows):
        return _with_columns(data, {**new, "next_obs": take(data.columns["next_obs"], last)})
    rows = _with_columns(data, new)
    return [{**row, "next_obs": data[i]["next_obs"]} for row, i in zip(rows, last, strict=True)]


def get_train_sample(
    data: Sequence[Any],
    unroll_len: int,
    last_fn_type: str = "last",
    null_transition: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Pieces of `unroll_len` rows, each one dict of (unroll_len, ...) arrays.

    With `unroll_len` 1 rows stay as they came. What is left over is dropped ('drop'), filled up
    with the rows before it ('last') or padded ('null_padding', as is 'last' for a trajectory
    shorter than one piece); padded samples carry the mask `null`.
    """
    if last_fn_type not in LAST_FN_TYPES:
        raise ValueError(
            f"unknown last_fn_type '{last_fn_type}'{nearest(last_fn_type, LAST_FN_TYPES)}"
        )
    if unroll_len == 1 or not len(data):
        return data if isinstance(data, list) else list(data)
    columns = columns_of(data)
    n = length(columns)
    n_piece, rest = divmod(n, unroll_len)
    index = np.arange(n_piece * unroll_len).reshape(n_piece, unroll_len)
    if rest and last_fn_type == "last" and n_piece:
        index = np.concatenate([index, np.arange(n - unroll_len, n)[None]])
    elif rest and last_fn_type != "drop":
        columns = _padded(columns, unroll_len - rest, null_transition)
        index = np.arange((n_piece + 1) * unroll_len).reshape(-1, unroll_len)
    return Rows(take(columns, index)) if len(index) else []


def _padded(columns: Batch, n: int, null_transition: Mapping[str, Any] | None) -> Batch:
    """`n` more rows: zeros and done, or `null_transition`; `null` tells them from real ones."""
    null = tree_map(np.zeros_like, take(columns, slice(0, 1)))
    if "done" in null:
        null["done"] = np.ones_like(null["done"])
    if null_transition is not None:
        null |= stack([dict(null_transition)])
    real = {**columns, "null": np.zeros(length(columns), dtype=bool)}
    return concat([real, *[{**null, "null": np.ones(1, dtype=bool)}] * n])


class Adder:
    """The functions above under one name."""

    get_gae = staticmethod(get_gae)
    get_gae_with_default_last_value = staticmethod(get_gae_with_default_last_value)
    get_nstep_return_data = staticmethod(get_nstep_return_data)
    get_train_sample = staticmethod(get_train_sample)
