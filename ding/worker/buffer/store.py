"""Rows in arrays: small fields side by side in one record, large ones in columns of their own.

A record means one place in memory per row instead of one per field, which is what sampling at
random costs. Fields come back as strided views of one gathered block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from ding.utils.batch import Batch
from ding.worker.buffer.frames import FrameStore, frames_per_stack
from ding.worker.buffer.memory import Blocks, Memory

Path = tuple[str | int, ...]
_SMALL = 512  # bytes: larger fields gain nothing from their neighbours
_PADDING = 1.045
_SHAPE, _DTYPE = attrgetter("shape"), attrgetter("dtype")
_BLOCK = 1 << 18  # bytes of a gathered column from which its block is worth keeping


@dataclass(frozen=True)
class Leaf:
    """One array of a (nested) batch."""

    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape))

    def plain(self) -> list[Any]:
        return [list(self.path), self.dtype.str, list(self.shape)]

    @classmethod
    def from_plain(cls, plain: Sequence[Any]) -> Leaf:
        path, dtype, shape = plain
        return cls(tuple(path), np.dtype(dtype), tuple(shape))


def leaves_of(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves_of(value, (*path, key))
    elif isinstance(tree, tuple):
        for i, value in enumerate(tree):
            yield from leaves_of(value, (*path, i))
    else:
        yield path, tree


class Store:
    """`size` rows of one layout. Slots are the caller's business."""

    def __init__(self, size: int, memory: Memory, leaves: Sequence[Leaf], n_frame: int = 0) -> None:
        self.size, self.leaves, self.n_frame = size, list(leaves), n_frame
        self._blocks = Blocks()
        self.arrays: dict[str, np.ndarray] = {}
        """What holds the rows, by name; all but the frames have a row per slot."""
        self.frames: FrameStore | None = None
        self._names: list[Any] = [leaf.path[0] for leaf in leaves]
        self._is_flat = all(len(leaf.path) == 1 for leaf in leaves)
        self._views: list[Any] = [None] * len(self.leaves)
        self._record: np.ndarray | None = None
        self._row_bytes = memoryview(b"")
        self._row_size = 0
        self._fields: list[tuple[int, str]] = []
        self._columns: list[tuple[int, np.ndarray]] = []
        self._allocate(memory)
        self._written = [(i, view) for i, view in enumerate(self._views) if view is not None]
        self._kinds: dict[int, tuple[Any, ...]] = {}
        self._single_is_raw = False  # the fields of a single row need no conversion
        # A single name would be picked without a tuple around it.
        self._n_flat = len(self.leaves) if self._is_flat and len(self.leaves) > 1 else -1
        self._pick: Any = itemgetter(*self._names)

    @classmethod
    def for_rows(cls, size: int, memory: Memory, columns: Batch, frame_stack: int | None) -> Store:
        """A store for rows like these."""
        arrays = ((path, np.asarray(value)) for path, value in leaves_of(columns))
        leaves = [Leaf(path, array.dtype, array.shape[1:]) for path, array in arrays]
        return cls(size, memory, leaves, frames_per_stack(columns, frame_stack))

    def _allocate(self, memory: Memory) -> None:
        left = set(range(len(self.leaves)))
        if self.n_frame:
            obs, next_obs = self._names.index("obs"), self._names.index("next_obs")
            leaf = self.leaves[obs]
            frame = (leaf.shape[1:], leaf.dtype)
            self.frames = FrameStore(self.size, memory, self.n_frame, *frame)
            self.arrays["frame_ids"] = self.frames.ids
            left -= {obs, next_obs}
        self._allocate_record(memory, _record_members(self.leaves, left))
        for i in sorted(left - {i for i, _ in self._fields}):
            array = memory.empty((self.size, *self.leaves[i].shape), self.leaves[i].dtype)
            self.arrays[f"column{i}"] = self._views[i] = array
            self._columns.append((i, array))

    def _allocate_record(self, memory: Memory, members: Sequence[int]) -> None:
        if not members:
            return
        formats = [(self.leaves[i].dtype, self.leaves[i].shape) for i in members]
        nbytes = [self.leaves[i].nbytes for i in members]
        words = -(-sum(nbytes) // 8)
        names = [f"f{i}" for i in members]
        offsets = [sum(nbytes[:k]) for k in range(len(members))]
        self._dtype = np.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "itemsize": 8 * words}
        )
        # Whole words: NumPy gathers those at twice the speed of structured rows.
        self._record = memory.empty((self.size, words), np.uint64)
        self.arrays["record"] = self._record
        self._row_bytes = memoryview(self._record.reshape(-1).view(np.uint8).data)
        self._row_size = 8 * words
        rows = self._record.view(self._dtype).reshape(-1)
        self._fields = list(zip(members, names, strict=True))
        for i, name in self._fields:
            self._views[i] = rows[name]

    # --- rows ----------------------------------------------------------------------------------

    def values(self, columns: Batch, n: int) -> Sequence[Any]:
        """The arrays of `n` rows in the order of the leaves; refused if they do not fit."""
        if len(columns) != self._n_flat:
            return self._checked(columns)
        try:
            found = self._pick(columns)
            # Pushes come in few sizes: all at once is compared faster than one by one.
            kinds = (*map(_DTYPE, found), *map(_SHAPE, found))
        except (KeyError, AttributeError):
            return self._checked(columns)  # which says what is wrong
        if kinds == self._kinds.get(n):
            return found
        checked = self._checked(columns)
        if len(self._kinds) < 64 or n in self._kinds:
            self._kinds[n] = kinds
            if n == 1:
                dtypes = tuple(leaf.dtype for leaf in self.leaves)
                self._single_is_raw = kinds[: len(dtypes)] == dtypes
        return checked

    def _checked(self, columns: Batch) -> list[Any]:
        found = dict(leaves_of(columns))
        paths = [leaf.path for leaf in self.leaves]
        if set(found) != set(paths):
            at = _where_keys_differ(paths, list(found))
            raise ValueError(
                f"pushed samples have {_keys_at(list(found), at)}{_text(at)}, but the buffer holds "
                f"{_keys_at(paths, at)}"
            )
        for leaf in self.leaves:
            shape = np.shape(found[leaf.path])[1:]
            if shape != leaf.shape:
                raise ValueError(
                    f"pushed samples{_text(leaf.path)} have shape {shape}, but the buffer holds "
                    f"{leaf.shape}"
                )
            dtype = np.asarray(found[leaf.path]).dtype
            if not np.can_cast(dtype, leaf.dtype, "same_kind"):
                raise ValueError(
                    f"pushed samples{_text(leaf.path)} are {dtype}, but the buffer holds "
                    f"{leaf.dtype}; push the same kind of numbers from the first sample on"
                )
        return [found[path] for path in paths]

    def write(self, values: Sequence[Any], start: int, n: int) -> None:
        """Rows into slots from `start` on, around the end."""
        stop = start + n
        if n == 1 and self._single_is_raw and self._record is not None:
            self._write_raw(values, start)
        elif stop <= self.size:
            where = slice(start, stop)
            for i, view in self._written:
                view[where] = values[i]
        else:
            first = self.size - start
            for i, view in self._written:
                view[start:], view[: n - first] = values[i][:first], values[i][first:]
        if self.frames is not None:
            obs, next_obs = self._names.index("obs"), self._names.index("next_obs")
            self.frames.write(values[obs], values[next_obs], start)

    def _write_raw(self, values: Sequence[Any], slot: int) -> None:
        """One row: its record in one go, which takes half the time of field by field."""
        raw = b"".join([values[i].tobytes() for i, _ in self._fields])
        at = slot * self._row_size
        self._row_bytes[at : at + len(raw)] = raw
        for i, column in self._columns:
            column[slot] = values[i][0]

    def read(self, index: np.ndarray) -> Batch:
        """The rows of these slots, in memory of their own."""
        values: list[Any] = [None] * len(self.leaves)
        if self._record is not None:
            block = self._record.take(index, axis=0).view(self._dtype).reshape(-1)
            for i, name in self._fields:
                values[i] = block[name]
        for i, column in self._columns:
            values[i] = self._gathered(column, index)
        if self.frames is not None:
            obs, next_obs = self._names.index("obs"), self._names.index("next_obs")
            values[obs], values[next_obs] = self.frames.read(index)
        return self._tree(values)

    def _tree(self, values: Sequence[Any]) -> Batch:
        if self._is_flat:
            return dict(zip(self._names, values, strict=True))
        return _nested(list(zip([leaf.path for leaf in self.leaves], values, strict=True)))

    def _gathered(self, column: np.ndarray, index: np.ndarray) -> np.ndarray:
        n = len(index)
        if column.ndim == 1 or n * column[0].nbytes < _BLOCK:
            return column.take(index, axis=0)
        block = self._blocks.empty((n, *column.shape[1:]), column.dtype)
        # 'raise' would gather into a second array first; slots are always within.
        return column.take(index, axis=0, out=block, mode="clip")

    def view(self, name: str) -> np.ndarray | None:
        """The whole column of a leaf at the top, not copied; None if there is none."""
        for leaf, view in zip(self.leaves, self._views, strict=True):
            if leaf.path == (name,):
                return view
        return None

    def gather(self, name: str, index: np.ndarray) -> Any:
        """One column (or a nested part) of these slots."""
        if self.frames is not None and name in ("obs", "next_obs"):
            return self.frames.read(index)[name == "next_obs"]
        pairs = zip(self.leaves, self._views, strict=True)
        parts = [(leaf.path[1:], view[index]) for leaf, view in pairs if leaf.path[0] == name]
        return parts[0][1] if parts[0][0] == () else _nested(parts)

    # --- state ---------------------------------------------------------------------------------

    def layout(self) -> dict[str, Any]:
        return {"leaves": [leaf.plain() for leaf in self.leaves], "n_frame": self.n_frame}

    @classmethod
    def from_layout(cls, size: int, memory: Memory, layout: dict[str, Any]) -> Store:
        leaves = [Leaf.from_plain(plain) for plain in layout["leaves"]]
        return cls(size, memory, leaves, layout["n_frame"])


def _record_members(leaves: Sequence[Leaf], among: set[int]) -> list[int]:
    """Leaves that share a record: small ones, as many as need little padding to whole words."""
    small = [i for i in sorted(among) if _fits_record(leaves[i])]
    members = sorted(small, key=lambda i: -leaves[i].dtype.itemsize)
    total = sum(leaf.nbytes for leaf in leaves)  # padding is little if it is so for the whole row
    while len(members) > 1:
        size = sum(leaves[i].nbytes for i in members)
        if -size % 8 <= (_PADDING - 1) * total:
            return members
        members.pop()  # of the smallest items: what is left over is aligned
    return []


def _fits_record(leaf: Leaf) -> bool:
    dtype = leaf.dtype
    return dtype.kind in "biufc" and dtype.itemsize <= 8 and 0 < leaf.nbytes <= _SMALL


def _nested(pairs: Sequence[tuple[Path, Any]]) -> Any:
    if len(pairs) == 1 and pairs[0][0] == ():
        return pairs[0][1]
    groups: dict[str | int, list[tuple[Path, Any]]] = {}
    for path, value in pairs:
        groups.setdefault(path[0], []).append((path[1:], value))
    parts = {key: _nested(group) for key, group in groups.items()}
    return tuple(parts.values()) if isinstance(next(iter(parts)), int) else parts


def _where_keys_differ(ours: Sequence[Path], theirs: Sequence[Path]) -> Path:
    at: Path = ()
    while True:
        shared = [k for k in _keys_at(ours, at) if k in _keys_at(theirs, at)]
        if _keys_at(ours, at) != _keys_at(theirs, at):
            return at
        different = [
            k for k in shared if set(_below(ours, (*at, k))) != set(_below(theirs, (*at, k)))
        ]
        at = (*at, different[0])


def _below(paths: Sequence[Path], at: Path) -> list[Path]:
    return [path for path in paths if path[: len(at)] == at]


def _keys_at(paths: Sequence[Path], at: Path) -> list[Any]:
    return sorted({path[len(at)] for path in _below(paths, at) if len(path) > len(at)}, key=str)


def _text(path: Path) -> str:
    return "".join(f"[{key!r}]" for key in path)
