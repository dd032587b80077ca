"""Memory that the processes of one env manager share, laid out by the envs' spaces.

U is the number of env instances (with spare envs, two for every env id).
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Mapping
from math import isfinite
from multiprocessing.reduction import DupFd
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from ding.envs.manager.columns import (
    ObsColumns,
    RowError,
    has_nan,
    nan_message,
    obs_columns,
    reward_shape,
)

_ALIGNMENT = 64
INFO_BYTES = 512


class EnvSpaces(NamedTuple):
    observation_space: Any
    action_space: Any
    reward_space: Any


class ColumnSpec(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype


class Fd:
    """A file descriptor that reaches another process when pickled while that is started."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (DupFd(self.number),)


def _received(passed: Any) -> Fd:
    return Fd(passed.detach())


class SharedBlock:
    """One column (or tree of columns) per field; anonymous, so nothing stays when all are gone."""

    def __init__(self, fields: Mapping[str, Any], fd: Fd | None = None) -> None:
        self._fields = dict(fields)
        self._end = 0
        tree_of_offsets = {name: self._placed(tree) for name, tree in self._fields.items()}
        size = self._end + _ALIGNMENT
        self.fd = fd or Fd(_anonymous_file(size))
        self._memory = mmap.mmap(self.fd.number, size)
        self.columns: dict[str, Any] = {
            name: self._view(tree) for name, tree in tree_of_offsets.items()
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedBlock, (self._fields, self.fd)

    def __getitem__(self, field: str) -> Any:
        return self.columns[field]

    def _placed(self, tree: Any) -> Any:
        """The tree with offsets instead of columns."""
        if isinstance(tree, ColumnSpec):
            offset = self._end
            size = int(np.prod(tree.shape)) * tree.dtype.itemsize
            self._end = -(-(offset + size) // _ALIGNMENT) * _ALIGNMENT
            return (tree, offset)
        if isinstance(tree, dict):
            return {key: self._placed(part) for key, part in tree.items()}
        return [self._placed(part) for part in tree]

    def _view(self, tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: self._view(part) for key, part in tree.items()}
        if isinstance(tree, list):
            return tuple(self._view(part) for part in tree)
        spec, offset = tree
        return np.ndarray(spec.shape, spec.dtype, buffer=self._memory, offset=offset)


def _anonymous_file(size: int) -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("ding-envs")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, size)
    return fd


def space_specs(space: Any, count: int) -> Any:
    """Column specs of `count` samples of a space; None if its samples have no fixed form."""
    if isinstance(space, spaces.Dict):
        parts = {key: space_specs(part, count) for key, part in space.spaces.items()}
        return None if not parts or None in parts.values() else parts
    if isinstance(space, spaces.Tuple):
        items = [space_specs(part, count) for part in space.spaces]
        return None if not items or None in items else tuple(items)
    if not isinstance(space, spaces.Space) or space.shape is None or space.dtype is None:
        return None
    dtype = np.dtype(space.dtype)
    return ColumnSpec((count, *space.shape), dtype) if dtype.kind in "biufc" else None


def worker_block(envs: EnvSpaces, count: int, workers: int, *, shared: bool) -> SharedBlock:
    """The memory of a pool with `count` envs; observations and actions only if `shared`."""
    fields: dict[str, Any] = {
        "reward": ColumnSpec((count, *reward_shape(envs.reward_space)), np.dtype(np.float32)),
        "flags": ColumnSpec((count,), np.dtype(np.uint8)),
        "may_reset": ColumnSpec((count,), np.dtype(np.uint8)),
        "info": ColumnSpec((count, INFO_BYTES), np.dtype(np.uint8)),
        "info_size": ColumnSpec((count,), np.dtype(np.int32)),
        "episode_seed": ColumnSpec((count,), np.dtype(np.int64)),
        "reset_seconds": ColumnSpec((count, 3), np.dtype(np.float64)),
        "running": ColumnSpec((workers,), np.dtype(np.int32)),
        "started": ColumnSpec((workers,), np.dtype(np.float64)),
    }
    obs = space_specs(envs.observation_space, count) if shared else None
    if obs is not None:
        fields |= {"obs": obs, "first": obs}
    action = space_specs(envs.action_space, count) if shared else None
    if action is not None:
        fields["action"] = action
    block = SharedBlock(fields)
    for name, nothing in (("running", -1), ("reset_seconds", np.inf), ("episode_seed", -1)):
        block[name][:] = nothing
    return block


Writer = Callable[[int, Any], None]


def row_writer(space: Any, column: Any, field: str = "obs") -> Writer:
    """A function that checks an observation against the space and writes it into the column."""
    if isinstance(column, np.ndarray):
        return LeafWriter(obs_columns(space, field), column)
    return TreeWriter(space, column, field)


class LeafWriter:
    def __init__(self, columns: ObsColumns, column: np.ndarray) -> None:
        self.columns, self.column = columns, column
        self.dtype, self.shape = column.dtype, column.shape[1:]
        self.is_float = column.dtype.kind == "f"

    def __call__(self, number: int, row: Any) -> None:
        if type(row) is not np.ndarray or row.dtype != self.dtype or row.shape != self.shape:
            row = np.asarray(self.columns.stack([row])[0])
        # The product is the quickest look at many numbers; infinities and overflow look bad too.
        if self.is_float and not isfinite(np.vdot(row, row)) and has_nan(row):
            raise RowError(nan_message(self.columns.field))
        self.column[number] = row


class TreeWriter:
    def __init__(self, space: Any, column: Any, field: str) -> None:
        self.columns = obs_columns(space, field)
        parts = column.items() if isinstance(column, dict) else enumerate(column)
        self.writers = [
            (key, row_writer(space[key], part, f"{field}[{key!r}]")) for key, part in parts
        ]

    def __call__(self, number: int, row: Any) -> None:
        try:
            for key, write in self.writers:
                write(number, row[key])
        except (KeyError, IndexError, TypeError) as error:
            self.columns.stack([row])  # Says what is missing.
            raise RowError(f"{self.columns.field} does not fit its space: {error!r}") from error
