"""Rows outside, columns inside.

A *batch* is a (nested) dict of arrays that share their first axis. `Rows` lets the same columns be
used as a list of dicts, `ByEnv` as a dict by env id; rows are built only when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, SupportsIndex

import numpy as np

from ding.utils.errors import DingError

Batch = dict[str, Any]
_UNFILLED: Any = object()


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """Apply `fn` to every leaf of nested dicts, tuples and lists."""
    if isinstance(tree, dict):
        return {key: tree_map(fn, value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        mapped = [tree_map(fn, value) for value in tree]
        return type(tree)(*mapped) if hasattr(tree, "_fields") else tuple(mapped)
    if isinstance(tree, list):
        return [tree_map(fn, value) for value in tree]
    return fn(tree)


def first_leaf(tree: Any) -> Any:
    while isinstance(tree, (dict, tuple, list)):
        if not tree:
            raise ValueError("a batch needs at least one array")
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return tree


def length(tree: Any) -> int:
    """Number of rows; an empty batch has none."""
    return 0 if isinstance(tree, dict) and not tree else len(first_leaf(tree))


def take(tree: Any, index: Any) -> Any:
    """Index, slice or mask the first axis of every array."""
    if isinstance(tree, dict):
        return {key: take(value, index) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tree_map(lambda leaf: leaf[index], tree)
    return tree[index]


def rows_of(ids: np.ndarray) -> Any:
    """An index for these rows: `ids`, or for a single one a slice, which is much faster."""
    if len(ids) != 1:
        return ids
    first = ids.item()
    return slice(first, first + 1)


def gather(tree: Any, index: np.ndarray) -> Any:
    """`take` for arrays and whole numbers, several times as fast where rows are small."""
    if isinstance(tree, dict):
        return {key: gather(value, index) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tree_map(lambda leaf: gather(leaf, index), tree)
    return tree.take(index, axis=0) if tree.ndim > 1 else tree[index]


def concat(trees: Sequence[Any]) -> Any:
    """Join batches along the first axis."""
    head = trees[0]
    if len(trees) == 1:
        return head
    if isinstance(head, dict):
        return {key: concat([tree[key] for tree in trees]) for key in head}
    if isinstance(head, tuple):
        return tuple(concat(column) for column in zip(*trees, strict=True))
    return np.concatenate(trees)


def stack(rows: Sequence[Any]) -> Any:
    """Rows (arrays, scalars, tensors, nested dicts or tuples of them) to columns, in NumPy.

    What has no common shape becomes a column of objects: stored and handed back as it came.
    """
    head = rows[0]
    if isinstance(head, dict):
        _check_same_keys(rows)
        return {key: stack([row[key] for row in rows]) for key in head}
    if isinstance(head, tuple) and all(isinstance(r, tuple) and len(r) == len(head) for r in rows):
        return tuple(stack(column) for column in zip(*rows, strict=True))
    return _stack_leaves(rows)


def _check_same_keys(rows: Sequence[Any]) -> None:
    keys = rows[0].keys()
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != keys:
            found = sorted(row) if isinstance(row, dict) else type(row).__name__
            raise ValueError(f"rows differ: row 0 has {sorted(keys)}, row {i} has {found}")


def _stack_leaves(rows: Sequence[Any]) -> np.ndarray:
    if isinstance(rows[0], (str, bytes)) or rows[0] is None:
        return objects(rows)
    try:
        column = np.stack([_as_array(row) for row in rows])
    except (ValueError, TypeError):
        return objects(rows)
    return objects(rows) if column.dtype.kind in "OUS" else column


def _as_array(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        return value.detach().cpu().numpy()
    # Python floats follow the data that policies and envs exchange, not NumPy's double default.
    return np.float32(value) if type(value) is float else np.asarray(value)  # type: ignore[return-value]


def objects(rows: Sequence[Any]) -> np.ndarray:
    column = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        column[i] = row
    return column


def unstack(columns: Any) -> list[Any]:
    """Columns to rows; numbers come as torch tensors that share the columns' memory."""
    if isinstance(columns, dict):
        names = list(columns)
        if not names:
            return []
        values = zip(*(unstack(columns[name]) for name in names), strict=True)
        return [dict(zip(names, row, strict=True)) for row in values]
    if isinstance(columns, tuple):
        return list(zip(*(unstack(column) for column in columns), strict=True))
    if isinstance(columns, np.ndarray) and columns.dtype != object:
        import torch

        return list(torch.from_numpy(columns))
    return list(columns)


class Rows(list[Any]):
    """A list of dicts whose data are columns; the rows are made on first look."""

    def __init__(self, columns: Batch | None = None) -> None:
        super().__init__()
        self._columns = columns or {}
        self._filled = not columns

    @property
    def columns(self) -> Batch:
        """The data as stacked arrays; once rows were looked at (and maybe changed) they count."""
        return stack(list(self)) if self._filled and super().__len__() else self._columns

    def _fill(self) -> None:
        if not self._filled:
            self._filled = True
            super().extend(unstack(self._columns))
            self._columns = {}

    def __len__(self) -> int:
        return super().__len__() if self._filled else length(self._columns)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[Any]:
        self._fill()
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and not self._filled:
            # torch has no views that run backwards.
            backwards = index.step is not None and index.step < 0
            part = take(self._columns, index)
            return Rows(tree_map(np.copy, part) if backwards else part)
        self._fill()
        return super().__getitem__(index)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Rows) and not (self._filled or other._filled):
            return Rows(concat([self._columns, other._columns]))
        return list(self) + list(other)

    def __radd__(self, other: Any) -> Any:
        return list(other) + list(self)

    def __iadd__(self, other: Any) -> Any:
        self._fill()
        return super().__iadd__(list(other))

    def __mul__(self, times: SupportsIndex) -> Any:
        return list(self) * times

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, list) and list(self) == list(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __contains__(self, item: object) -> bool:
        self._fill()
        return super().__contains__(item)

    def __repr__(self) -> str:
        return repr(list(self))

    def __reversed__(self) -> Iterator[Any]:
        self._fill()
        return super().__reversed__()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Rows, (self._columns,)) if not self._filled else (list, (list(self),))

    def __copy__(self) -> Any:
        return Rows(dict(self._columns)) if not self._filled else list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._filled:
            return deepcopy(list(self), memo)
        return Rows(deepcopy(self._columns, memo))

    def copy(self) -> Any:
        return self.__copy__()


def _filling(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: Rows, *args: Any, **kwargs: Any) -> Any:
        self._fill()
        return method(self, *args, **kwargs)

    call.__name__ = name
    return call


for _name in (
    *("append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "index", "count"),
    *("__setitem__", "__delitem__", "__imul__", "__lt__", "__le__", "__gt__", "__ge__"),
):
    setattr(Rows, _name, _filling(_name))


def columns_of(rows: Sequence[Any]) -> Batch:
    """The columns of `Rows`, or of a plain list of dicts."""
    return rows.columns if isinstance(rows, Rows) else stack(rows)


class ByEnv(dict[int, Any]):
    """`{env_id: value}` that carries its stacked form; a plain dict to whoever looks."""

    _filled = False

    def __init__(self, ids: np.ndarray, stacked: Any) -> None:
        self.ids = ids
        self.stacked = stacked
        # Not empty even before it is filled: C code (json) looks at the size without asking.
        super().__setitem__(-1, None)

    def _rows(self) -> Sequence[Any]:
        return [take(self.stacked, i) for i in range(len(self.ids))]

    def _fill(self) -> None:
        if not self._filled:
            self._filled = True
            super().clear()
            super().update(zip(self.ids.tolist(), self._rows(), strict=True))

    def __len__(self) -> int:
        return super().__len__() if self._filled else len(self.ids)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[int]:
        self._fill()
        return super().__iter__()

    def __getitem__(self, env_id: int) -> Any:
        self._fill()
        return super().__getitem__(env_id)

    def __contains__(self, env_id: object) -> bool:
        self._fill()
        return super().__contains__(env_id)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, dict) and dict(self) == dict(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (list(self.items()),))

    def __setitem__(self, env_id: int, value: Any) -> None:
        self._fill()
        super().__setitem__(env_id, value)
        self.ids = _UNFILLED

    def __delitem__(self, env_id: int) -> None:
        self._fill()
        super().__delitem__(env_id)
        self.ids = _UNFILLED

    @property
    def is_stacked(self) -> bool:
        """False once somebody changed the dict, or may have changed a dict in it."""
        return self.ids is not _UNFILLED and not (self._filled and isinstance(self.stacked, dict))


def _filling_dict(name: str, changes: bool) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: ByEnv, *args: Any, **kwargs: Any) -> Any:
        self._fill()
        if changes:
            self.ids = _UNFILLED
        return method(self, *args, **kwargs)

    call.__name__ = name
    return call


for _name in ("keys", "values", "items", "get", "copy", "__or__", "__ror__", "__reversed__"):
    setattr(ByEnv, _name, _filling_dict(_name, changes=False))
for _name in ("pop", "popitem", "clear", "update", "setdefault", "__ior__"):
    setattr(ByEnv, _name, _filling_dict(_name, changes=True))


def stacked_of(by_env: Mapping[int, Any]) -> tuple[np.ndarray, Any]:
    """Env ids and stacked values, at no cost from `ByEnv`, by stacking once from a plain dict."""
    if isinstance(by_env, ByEnv) and by_env.is_stacked:
        return by_env.ids, by_env.stacked
    if not (isinstance(by_env, Mapping) and len(by_env)):
        raise DingError(
            "forward takes {env_id: obs}, for one observation {0: obs}; it was given "
            f"{'an empty dict' if isinstance(by_env, Mapping) else type(by_env).__name__}"
        )
    ids = np.fromiter(by_env.keys(), dtype=np.int64, count=len(by_env))
    return ids, stack(list(by_env.values()))
