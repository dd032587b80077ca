"""Observations of many envs to columns and columns of actions to rows, checked against the spaces.

N is the number of envs in a batch.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.utils.batch import concat, stack, take, tree_map

# Up to so many numbers a Python sum is faster than a NumPy reduction.
_FEW = 128


class RowError(ValueError):
    """The observation or action of one env does not fit its space."""


class NoArrayError(RowError):
    """An observation is nothing, or more than an observation."""


class ObsColumns:
    """Stacks observations that have a fixed shape; every result is a new block of memory."""

    def __init__(self, space: spaces.Space[Any], field: str = "obs") -> None:
        self.field = field
        self.shape: tuple[int, ...] = space.shape  # type: ignore[assignment]
        self.dtype: Any = space.dtype

    def stack(self, rows: Sequence[Any]) -> Any:
        try:
            column = np.array(rows)
            if column.dtype is self.dtype and column.shape[1:] == self.shape:
                return column
        except ValueError:
            pass  # Row by row, so that the error can say which one does not fit and how.
        return np.stack([self._fitting(row) for row in rows])

    def _fitting(self, row: Any) -> np.ndarray:
        try:
            array = np.asarray(row)
        except ValueError:
            array = np.empty((), dtype=object)
        # A scalar observation may come as an array of one number.
        if not self.shape and array.shape == (1,):
            array = array.reshape(())
        if array.shape != self.shape or not np.can_cast(array.dtype, self.dtype, "same_kind"):
            declared = f"but the observation space declares {self.shape} and {self.dtype}"
            if row is None or isinstance(row, tuple):
                raise NoArrayError(f"{self.field} is {described(row)}, {declared}")
            raise RowError(
                f"{self.field} has shape {array.shape} and dtype {array.dtype}, {declared}"
            )
        return array.astype(self.dtype, copy=False)

    def joined(self, columns: Sequence[Any]) -> Any:
        """One column of several."""
        return concat(columns)

    def replaced(self, column: Any, index: Sequence[int] | np.ndarray, part: Any) -> Any:
        """A copy of `column` with the rows at `index` taken from `part`."""
        copy = column.copy()
        if len(index) == 1:  # One number as index takes an eighth of the time of a list.
            copy[index[0]] = part[0]
        else:
            copy[index] = part
        return copy


class NestedColumns(ObsColumns):
    """Dict and Tuple observations, part by part."""

    def __init__(self, space: spaces.Dict | spaces.Tuple, field: str = "obs") -> None:
        self.field = field
        self.kind: type = dict if isinstance(space, spaces.Dict) else tuple
        named = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        self.parts = {key: obs_columns(part, f"{field}[{key!r}]") for key, part in named}

    def stack(self, rows: Sequence[Any]) -> Any:
        try:
            columns = {
                key: part.stack([row[key] for row in rows]) for key, part in self.parts.items()
            }
        except (KeyError, IndexError, TypeError) as error:
            raise RowError(
                f"{self.field} does not have the parts {list(self.parts)} that the observation "
                f"space declares: {error!r}"
            ) from error
        return self._joined(columns)

    def replaced(self, column: Any, index: Sequence[int] | np.ndarray, part: Any) -> Any:
        return self._joined(
            {key: p.replaced(column[key], index, part[key]) for key, p in self.parts.items()}
        )

    def _joined(self, columns: dict[Any, Any]) -> Any:
        return columns if self.kind is dict else tuple(columns.values())


class LooseColumns(ObsColumns):
    """Observations about whose shape nothing is known."""

    def __init__(self, field: str = "obs") -> None:
        self.field = field

    def stack(self, rows: Sequence[Any]) -> Any:
        if any(row is None for row in rows):
            raise NoArrayError(f"{self.field} is None, expected an observation")
        return stack(rows)

    def joined(self, columns: Sequence[Any]) -> Any:
        return stack([row for column in columns for row in _split(column)])

    def replaced(self, column: Any, index: Sequence[int] | np.ndarray, part: Any) -> Any:
        rows = _split(column)
        for i, row in zip(index, _split(part), strict=True):
            rows[i] = row
        return stack(rows)


def obs_columns(space: Any, field: str = "obs") -> ObsColumns:
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        return NestedColumns(space, field)
    if isinstance(space, spaces.Space) and space.shape is not None and space.dtype is not None:
        return ObsColumns(space, field)
    return LooseColumns(field)


def leaves(tree: Any, field: str) -> Iterator[tuple[str, Any]]:
    """Every array of a tree with its name, e.g. `obs['position']`."""
    if isinstance(tree, (dict, tuple)):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(part, f"{field}[{key!r}]")
    else:
        yield field, tree


def put_rows(tree: Any, index: Any, part: Any) -> None:
    """Write rows into every column of a tree."""
    if isinstance(tree, (dict, tuple)):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            put_rows(tree[key], index, part[key])
    else:
        tree[index] = part


def has_nan(tree: Any) -> bool:
    if type(tree) is np.ndarray:
        if tree.dtype.kind != "f" or not tree.size:
            return False
        if tree.size <= _FEW:
            total = sum(tree.ravel().tolist())
            if total == total:  # Otherwise it may still be inf - inf.
                return False
        # The maximum passes NaN on, and unlike a sum cannot overflow or make one of infinities.
        top = np.maximum.reduce(tree, axis=None)
        return bool(top != top)
    if isinstance(tree, (dict, tuple)):
        return any(has_nan(leaf) for _, leaf in leaves(tree, ""))
    return False


def stack_checked(columns: ObsColumns, rows: Sequence[Any]) -> Any:
    """Stack observations and raise `RowError` if there is NaN in them."""
    column = columns.stack(rows)
    if has_nan(column):
        fields = [field for field, leaf in leaves(column, columns.field) if has_nan(leaf)]
        raise RowError(nan_message(", ".join(fields)))
    return column


def nan_message(field: str, value: str = "NaN") -> str:
    return f"{field} is {value}; mend the env, or set max_retry>1 to drop such episodes"


def described(given: Any) -> str:
    """Words for an object that is not what it should be."""
    if given is None:
        return "None"
    if isinstance(given, tuple):
        return f"a tuple of {len(given)}"
    shape = getattr(given, "shape", ())
    return (
        f"an array of shape {tuple(shape)}"
        if shape
        else f"{type(given).__name__} {reprlib.repr(given)}"
    )


def check_rewards(rewards: np.ndarray) -> None:
    if not all_finite(rewards):
        raise RowError(reward_message(rewards))


def all_finite(rewards: np.ndarray) -> bool:
    if rewards.size <= _FEW and isfinite(sum(rewards.ravel().tolist())):
        return True
    return bool(np.isfinite(rewards).all())


def reward_message(rewards: np.ndarray) -> str:
    """The reason why these rewards cannot be used, some of which are not finite."""
    if has_nan(rewards):
        return nan_message("reward")
    return nan_message("reward", "inf, expected a finite number")


def no_reward(space: Any) -> Any:
    """The reward of a step that failed, in the form of the others."""
    shape = reward_shape(space)
    return np.zeros(shape, dtype=np.float32) if shape else 0.0


def reward_shape(space: Any) -> tuple[int, ...]:
    """Shape of one reward; arrays of one number count as numbers."""
    shape = tuple(getattr(space, "shape", None) or ())
    return shape if np.prod(shape) > 1 else ()


def reward_column(rewards: Sequence[Any]) -> np.ndarray:
    """(N,) float32; rewards that are vectors give (N, ...)."""
    try:
        column = np.array(rewards, dtype=np.float32)
    except (ValueError, TypeError):
        column = _mixed_rewards(rewards)
    return as_numbers(column) if column.ndim > 1 else column


def as_numbers(rewards: np.ndarray) -> np.ndarray:
    """Rewards that are arrays of one number, as numbers; others as they are."""
    return rewards.ravel() if rewards.ndim > 1 and rewards.size == len(rewards) else rewards


def _mixed_rewards(rewards: Sequence[Any]) -> np.ndarray:
    """Numbers beside arrays of one number."""
    try:
        return np.stack([np.asarray(reward, dtype=np.float32).ravel() for reward in rewards])
    except (ValueError, TypeError) as error:
        raise RowError(f"rewards {rewards} are no numbers or arrays of one shape") from error


class ActionRows:
    """Splits a batch of actions into one action per env, after a look at their shape."""

    def __init__(self, space: Any, python_actions: bool) -> None:
        self.space = space
        self.as_int = python_actions and isinstance(space, spaces.Discrete)

    def __call__(self, stacked: Any, count: int) -> list[Any]:
        if (
            self.as_int
            and type(stacked) is np.ndarray
            and stacked.ndim == 1
            and stacked.dtype.kind == "i"
        ):
            return stacked.tolist()
        if type(stacked) is np.ndarray and stacked.ndim > 1 and self._fits(stacked, count):
            return list(stacked)
        columns = fitting_actions(self.space, tree_map(to_numpy, stacked), count, "action")
        return columns.tolist() if self.as_int else _split(columns)

    def _fits(self, stacked: np.ndarray, count: int) -> bool:
        space = self.space
        return (
            isinstance(space, spaces.Box)
            and stacked.dtype == space.dtype
            and stacked.shape == (count, *space.shape)
        )


def fitting_actions(space: Any, columns: Any, count: int, field: str) -> Any:
    """The columns of `count` actions, or `RowError` if they do not fit the space."""
    if isinstance(space, spaces.Dict):
        if not isinstance(columns, dict) or columns.keys() != space.spaces.keys():
            raise RowError(f"{field} must be a dict with the keys {list(space.spaces)}")
        return {
            k: fitting_actions(s, columns[k], count, f"{field}[{k!r}]") for k, s in space.items()
        }
    if isinstance(space, spaces.Tuple):
        if not isinstance(columns, tuple) or len(columns) != len(space.spaces):
            raise RowError(f"{field} must be a tuple of {len(space.spaces)} parts")
        parts = zip(space.spaces, columns, strict=True)
        return tuple(
            fitting_actions(s, c, count, f"{field}[{i}]") for i, (s, c) in enumerate(parts)
        )
    if not isinstance(space, spaces.Space) or space.shape is None:
        return columns
    return _fitting_leaf(space, columns, count, field)


def _fitting_leaf(space: Any, column: Any, count: int, field: str) -> Any:
    wanted = (count, *space.shape)
    if not isinstance(column, np.ndarray) or column.size != np.prod(wanted) or len(column) != count:
        given = column.shape if isinstance(column, np.ndarray) else type(column).__name__
        raise RowError(f"{field}s of {count} envs must have the shape {wanted}, got {given}")
    if space.dtype is not None and not np.can_cast(column.dtype, space.dtype, "same_kind"):
        raise RowError(f"{field}s must have the dtype {space.dtype}, got {column.dtype}")
    return column.reshape(wanted)


def _split(columns: Any) -> list[Any]:
    # The ellipsis keeps numbers as arrays, which envs may rely on.
    count = next(len(leaf) for _, leaf in leaves(columns, ""))
    return [take(columns, (k, ...)) for k in range(count)]


def to_numpy(leaf: Any) -> Any:
    return leaf.detach().cpu().numpy() if hasattr(leaf, "detach") else leaf
