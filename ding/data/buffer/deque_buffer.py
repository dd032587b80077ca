"""A buffer of any objects with indices and meta data, on the ring of `ding.worker.buffer`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ding.data.buffer.buffer import Buffer, BufferedData, apply_middleware
from ding.worker.buffer.naive import NaiveReplayBuffer, draw
from ding.worker.buffer.ring import ITEM

GroupBy = str | Callable[[BufferedData], Any]


class _Elements(NaiveReplayBuffer):
    """The ring with access by serial number; what was deleted is None."""

    def __init__(self, size: int) -> None:
        super().__init__(dict(replay_buffer_size=size))
        self._gone: set[int] = set()
        self._live: np.ndarray | None = None

    def add(self, item: Any) -> None:
        self.push([item])
        if self._gone:
            self._gone = {serial for serial in self._gone if serial >= self._oldest}
        self._live = None

    @property
    def next_serial(self) -> int:
        return self._serial

    @property
    def n_live(self) -> int:
        return self.count() - len(self._gone)

    def live(self) -> np.ndarray:
        """Serial numbers of what is there, the oldest first."""
        if self._live is None:
            serials = np.arange(self._oldest, self._serial)
            gone = np.fromiter(self._gone, np.int64, len(self._gone))
            self._live = np.setdiff1d(serials, gone, assume_unique=True) if len(gone) else serials
        return self._live

    def at(self, serial: int) -> Any:
        """None if it was deleted or overwritten, or never was."""
        if not self._oldest <= serial < self._serial or self._store is None:
            return None
        column = self._store.view(ITEM)
        return None if column is None else column[serial % self._size]

    def remove(self, serial: int) -> None:
        if self.at(serial) is not None:
            assert self._store is not None
            self._store.view(ITEM)[serial % self._size] = None  # type: ignore[index]
            self._gone.add(serial)
            self._live = None

    def clear(self) -> None:
        super().clear()
        self._gone, self._live = set(), None

    def load_data(self, file_name: str | Path) -> None:
        super().load_data(file_name)
        serials = range(self._oldest, self._serial)
        self._gone = {serial for serial in serials if self.at(serial) is None}
        self._live = None


class DequeBuffer(Buffer):
    """First in, first out; an element is `BufferedData(data, index, meta)`."""

    def __init__(self, size: int, sliced: bool = False) -> None:
        super().__init__(size)
        self.sliced = sliced
        self._elements = _Elements(size)

    @apply_middleware("push")
    def push(self, data: Any, meta: dict[str, Any] | None = None) -> BufferedData:
        index = str(self._elements.next_serial)
        buffered = BufferedData(data=data, index=index, meta=dict(meta or {}))
        self._elements.add(buffered)
        return buffered

    @apply_middleware("sample")
    def sample(
        self,
        size: int | None = None,
        indices: Sequence[str] | None = None,
        replace: bool = False,
        sample_range: slice | None = None,
        ignore_insufficient: bool = False,
        groupby: GroupBy | None = None,
        unroll_len: int | None = None,
    ) -> list[Any]:
        """Elements drawn uniformly, or those of `indices`; groups of them with `groupby`.

        A group is a list of elements with the same meta value (or result of a function), in order
        of age; `unroll_len` cuts a piece of that length out of each. ValueError if there are too
        few, unless `ignore_insufficient`.
        """
        if size is None and indices is None:
            raise ValueError("sample needs size or indices")
        if groupby is None and unroll_len:
            raise ValueError("unroll_len needs groupby")
        if indices is not None:
            found = [self.get_by_index(index) for index in indices]
            return [element for element in found if element is not None]
        assert size is not None
        if groupby is not None:
            return self._groups(size, groupby, unroll_len, (replace, sample_range))
        live = self._range(sample_range)
        n = self._checked(size, len(live), replace, ignore_insufficient)
        chosen = live[draw(self._rng, len(live), n, replace)] if n else live[:0]
        return [self._elements.at(serial) for serial in chosen.tolist()]

    @property
    def _rng(self) -> np.random.Generator:
        return self._elements._rng

    def _range(self, sample_range: slice | None) -> np.ndarray:
        live = self._elements.live()
        return live if sample_range is None else live[sample_range]

    def _checked(self, size: int, there: int, replace: bool, ignore: bool) -> int:
        if there >= size or (replace and there):
            return size
        if not ignore:
            raise ValueError(f"cannot sample {size} of {there} elements; use replace=True")
        return there

    def _groups(
        self,
        size: int,
        groupby: GroupBy,
        unroll_len: int | None,
        how: tuple[bool, slice | None],
    ) -> list[list[BufferedData]]:
        replace, sample_range = how
        groups: dict[Any, list[BufferedData]] = defaultdict(list)
        for serial in self._range(sample_range).tolist():
            element = self._elements.at(serial)
            key = groupby(element) if callable(groupby) else element.meta[groupby]
            groups[key].append(element)
        pieces = list(groups.values())
        if unroll_len:
            pieces = [group for group in pieces if len(group) >= unroll_len]
        n = self._checked(size, len(pieces), replace, ignore=False)
        chosen = [pieces[i] for i in draw(self._rng, len(pieces), n, replace)]
        return [self._unrolled(group, unroll_len) for group in chosen] if unroll_len else chosen

    def _unrolled(self, group: list[BufferedData], n: int) -> list[BufferedData]:
        if self.sliced:
            starts = range(0, len(group) - n + 1, n)
            start = starts[int(self._rng.integers(len(starts)))]
        else:
            start = int(self._rng.integers(len(group) - n + 1))
        return group[start : start + n]

    @apply_middleware("update")
    def update(self, index: str, data: Any = None, meta: dict[str, Any] | None = None) -> bool:
        """Replace data and meta of an element; False if it is gone."""
        element = self.get_by_index(index)
        if element is None:
            return False
        element.data = data
        element.meta = dict(meta or {})
        return True

    @apply_middleware("delete")
    def delete(self, index: str | list[str]) -> None:
        for one in [index] if isinstance(index, str) else index:
            self._elements.remove(int(one))

    def count(self) -> int:
        return self._elements.n_live

    def __len__(self) -> int:
        return self.count()

    def get(self, idx: int) -> BufferedData:
        """By age: 0 is the oldest, -1 the newest."""
        return self._elements.at(int(self._elements.live()[idx]))

    def get_by_index(self, index: str) -> BufferedData | None:
        return self._elements.at(int(index))

    @apply_middleware("clear")
    def clear(self) -> None:
        self._elements.clear()

    def __iter__(self) -> Any:
        return (self._elements.at(serial) for serial in self._elements.live().tolist())

    def save_data(self, file_name: str | Path) -> None:
        self._elements.save_data(file_name)

    def load_data(self, file_name: str | Path) -> None:
        self._elements.load_data(file_name)
