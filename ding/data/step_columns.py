"""Columns of steps: as others write them, what follows what, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ding.data.hdf5 import leaves
from ding.utils.batch import Batch, columns_of, length, tree_map
from ding.utils.errors import DemonstrationError

STEP_KEYS = ("obs", "action", "reward", "next_obs", "done")
"""Columns that steps of other sources must have; `truncated` may be there too."""


def established_columns(steps: Sequence[Any], name: str) -> Batch:
    """Columns of steps as they are written elsewhere: numbers may be (N, 1), floats 64 bits."""
    if not len(steps):
        raise DemonstrationError(f"'{name}' has no steps")
    columns = tree_map(_narrow, _numbers(columns_of(steps), name))
    reward = columns["reward"].reshape(len(columns["reward"]), -1)
    if reward.shape[1] > 1:
        raise DemonstrationError(
            f"'{name}' has samples of {reward.shape[1]} steps each (nstep); single steps are "
            "needed: collect it again with policy.nstep = 1"
        )
    columns["reward"] = reward[:, 0].astype(np.float32)
    if columns["action"].dtype.kind in "iu" and columns["action"].shape[1:] == (1,):
        columns["action"] = columns["action"][:, 0]
    for key in {"done", "truncated"} & set(columns):
        columns[key] = columns[key].reshape(len(reward), -1)[:, 0].astype(bool)
    return columns


def _numbers(given: Batch, name: str) -> Batch:
    """The columns that count, if they are there and hold numbers of one shape."""
    lacking = [key for key in STEP_KEYS if key not in given]
    if lacking:
        raise DemonstrationError(
            f"'{name}' has steps without {', '.join(lacking)}; a step has {', '.join(STEP_KEYS)}"
        )
    wanted = {key: given[key] for key in (*STEP_KEYS, "truncated") if key in given}
    for path, leaf in leaves(wanted, ""):
        if np.asarray(leaf).dtype.kind not in "biuf":
            raise DemonstrationError(
                f"'{name}': column {path[1:]} is not numbers of one shape for every step"
            )
    return wanted


def _narrow(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def same_rows(a: Any, b: Any) -> np.ndarray:
    """(N,) whether the rows of two trees are equal."""
    parts = zip(
        (leaf for _, leaf in leaves(a, "")), (leaf for _, leaf in leaves(b, "")), strict=True
    )
    equal = [(x == y).all(axis=tuple(range(1, x.ndim))) for x, y in parts]
    return np.logical_and.reduce(equal)


def shifted(obs: Any, final_obs: Any, lengths: np.ndarray) -> Any:
    """The observation after each step."""
    ends = np.cumsum(lengths) - 1

    def shift(path: str, column: np.ndarray) -> np.ndarray:
        after = np.empty_like(column)
        after[:-1] = column[1:]
        after[ends] = final[path]
        return after

    final = dict(leaves(final_obs, ""))
    shifted = {path: shift(path, column) for path, column in leaves(obs, "")}
    paths = iter(shifted.values())
    return tree_map(lambda _: next(paths), obs)


def problem_of(columns: Batch, lengths: np.ndarray, final_obs: Any) -> str | None:
    """First thing that is wrong with the columns themselves."""
    n = len(columns["reward"])
    for path, leaf in leaves(columns, ""):
        if len(leaf) != n:
            return f"has {len(leaf)} rows of {path[1:]} but {n} of reward"
    if not n:
        return "has no steps"
    if lengths.ndim != 1 or (lengths < 1).any() or lengths.sum() != n:
        return f"has {n} steps, but episodes of {lengths.sum()}"
    done = columns["terminated"] | columns["truncated"]
    if np.count_nonzero(done) != len(lengths) or not done[np.cumsum(lengths) - 1].all():
        return "has steps after the end of an episode, or an episode without an end"
    if (columns["terminated"] & columns["truncated"]).any():
        return "has steps that are both terminated and truncated"
    if length(final_obs) != len(lengths):
        return f"has {length(final_obs)} final observations for {len(lengths)} episodes"
    named = {"obs": columns["obs"], "action": columns["action"], "reward": columns["reward"]}
    return not_finite({**named, "final_obs": final_obs})


def not_finite(tree: Any) -> str | None:
    """Names the first column that holds NaN or infinite numbers."""
    for path, leaf in leaves(tree, ""):
        if leaf.dtype.kind == "f" and not _all_finite(leaf.reshape(-1)):
            row = int(np.flatnonzero(~np.isfinite(leaf.reshape(len(leaf), -1)).all(axis=1))[0])
            return f"has NaN or infinite numbers: {path[1:]} of step {row}"
    return None


def _all_finite(flat: np.ndarray) -> bool:
    """NaN and infinities survive a sum of squares, which is the quickest pass over numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        quick = all(np.isfinite(np.dot(part, part)) for part in _parts(flat))
    return quick or bool(np.isfinite(flat).all())


def _parts(flat: np.ndarray, size: int = 1 << 18) -> list[np.ndarray]:
    return [flat[i : i + size] for i in range(0, len(flat), size)]
