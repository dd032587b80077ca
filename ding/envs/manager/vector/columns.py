"""Batches as vector envs speak them: infos, observations and actions of many envs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from ding.envs.manager.columns import ActionRows, RowError, described
from ding.envs.spaces import ActionMap, DiscreteAction, NestedAction, RegroupedAction
from ding.utils.batch import stack

_FINAL = ("final_obs", "final_info")


class InfoRows(Sequence[dict[str, Any]]):
    """The infos of a vector env as one dict per env, each made when somebody looks.

    The last infos of episodes that were reset in the same step are in `final_info`.
    """

    def __init__(
        self, infos: dict[str, Any], index: Sequence[int], final: Sequence[int] = ()
    ) -> None:
        self._infos, self._index, self._final = infos, index, final
        self._rows: dict[int, dict[str, Any]] = {}

    def flags(self, key: str) -> np.ndarray:
        """(n,) bool: which envs say that this is so."""
        if not self._infos or not (key in self._infos or key in self._last):
            return np.zeros(len(self._index), dtype=bool)
        return np.array([bool(row.get(key)) for row in self])

    @property
    def _last(self) -> dict[str, Any]:
        return self._infos.get("final_info", {})

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[j] for j in range(*k.indices(len(self)))]
        k = range(len(self))[k]  # from the end, or an IndexError
        if k not in self._rows:
            i = self._index[k]
            last = i in self._final
            row = info_of(self._last if last else self._infos, i)
            self._rows[k] = row if last else {n: v for n, v in row.items() if n not in _FINAL}
        return self._rows[k]


def info_of(infos: dict[str, Any], i: int) -> dict[str, Any]:
    """The info of env i; a mask `_key` says which envs have a `key`."""
    row = {}
    for key, column in infos.items():
        mask = infos.get(f"_{key}")
        is_mask = key.startswith("_") and key[1:] in infos
        if not is_mask and (mask is None or mask[i]):
            row[key] = info_of(column, i) if isinstance(column, dict) else column[i]
    return row


class QuickMultiDiscrete(spaces.MultiDiscrete):
    """`MultiDiscrete` that answers for a batch of one kind of action at once."""

    def __init__(self, space: spaces.MultiDiscrete) -> None:
        super().__init__(space.nvec, dtype=space.dtype.type, start=space.start)
        # Where the numbers have different ranges, no value is quickly known to be valid.
        self._floor, self._top = int(space.start.max()), int((space.start + space.nvec).min())

    def contains(self, x: Any) -> bool:
        if type(x) is np.ndarray and x.dtype == self.dtype and x.shape == self.shape:
            values = x.ravel().tolist()
            if self._floor <= min(values) and max(values) < self._top:
                return True
        return super().contains(x)


def fitting_actions(space: Space[Any], stacked: Any, count: int) -> Any:
    """Columns of presented actions of `count` envs, checked, in the dtype of the space."""
    if type(stacked) is np.ndarray and stacked.dtype == space.dtype:
        plain = type(space) in (spaces.Discrete, spaces.Box)
        if plain and stacked.shape == (count, *space.shape):  # type: ignore[misc]
            return stacked
    return _typed(space, stack(ActionRows(space, False)(stacked, count)))


def _typed(space: Any, columns: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _typed(part, columns[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_typed(s, c) for s, c in zip(space.spaces, columns, strict=True))
    return columns.astype(space.dtype)


def map_actions(part: ActionMap, columns: Any) -> Any:
    """Columns of presented actions to columns of the simulators'."""
    if isinstance(part, RegroupedAction):
        return map_actions(part.nested, part.split(columns))
    if isinstance(part, NestedAction):
        if isinstance(part.parts, dict):
            return {key: map_actions(p, columns[key]) for key, p in part.parts.items()}
        pairs = zip(part.parts, columns, strict=True)
        return tuple(map_actions(p, column) for p, column in pairs)
    if isinstance(part, DiscreteAction):
        return columns + part.start if part.start else columns
    return part(columns)


def fitted(space: Space[Any], obs: Any, count: int, field: str = "obs") -> Any:
    """Columns of observations as the space declares them, always in new memory."""
    if isinstance(space, spaces.Dict):
        return {k: fitted(s, obs[k], count, f"{field}[{k!r}]") for k, s in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        parts = enumerate(zip(space.spaces, obs, strict=True))
        return tuple(fitted(s, part, count, f"{field}[{i}]") for i, (s, part) in parts)
    column, shape, dtype = np.asarray(obs), (count, *space.shape), space.dtype  # type: ignore[misc]
    same_kind = column.dtype == dtype or np.can_cast(column.dtype, dtype, "same_kind")  # type: ignore[arg-type]
    if column.shape != shape or not same_kind:
        raise RowError(
            f"{field} of {count} envs has shape {column.shape} and dtype {column.dtype}, but the "
            f"observation space declares {shape} and {dtype}"
        )
    return column.astype(dtype)


def first_obs(given: Any) -> Any:
    """The observations that a vector env's `reset` gave."""
    if not isinstance(given, tuple) or len(given) != 2:
        raise RowError(f"reset gave {described(given)}, expected (obs, info)")
    return given[0]


def five_columns(given: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What a vector env's `step` gave."""
    if not isinstance(given, tuple) or len(given) != 5:
        raise RowError(
            f"step gave {described(given)}, expected (obs, reward, terminated, truncated, info)"
        )
    return given


def flags(column: Any, field: str, count: int) -> np.ndarray:
    """(N,): one flag for each env."""
    array = np.asarray(column)
    if array.shape != (count,) or array.dtype.kind not in "biuf":
        raise RowError(
            f"{field} has shape {array.shape} and dtype {array.dtype}, expected one bool for each "
            f"of {count} envs"
        )
    return array if array.dtype == bool else array.astype(bool)


def put(columns: Any, index: np.ndarray, part: Any) -> Any:
    """A copy of `columns` with other rows at `index`."""
    if isinstance(columns, dict):
        return {key: put(column, index, part[key]) for key, column in columns.items()}
    if isinstance(columns, tuple):
        pairs = zip(columns, part, strict=True)
        return tuple(put(column, index, p) for column, p in pairs)
    copy = columns.copy()
    copy[index] = part
    return copy
