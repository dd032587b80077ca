"""Links: which stored step follows which, so that targets over several steps are made on drawing.

Rows say where they belong by `episode_id` and, if some may be missing, `episode_step`; without an
id, successive rows are successive steps. `done` (or `end`, the last row of a contiguous piece) ends
a chain. Letters in shapes: B batch, n steps of a chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ding.utils.batch import Batch

ORIGIN = ("episode_id", "episode_step")
"""Columns that only say where a step belongs."""
_MANY_OPEN = 4096


class _Tail(NamedTuple):
    """Newest step of an episode that goes on."""

    serial: int
    step: int


class Links:
    def __init__(self, size: int, both_ways: bool = False) -> None:
        """`both_ways`: the step before can be found as well."""
        self.next = np.zeros(size, np.int64)
        """For each slot how many rows later the next step of the same episode came; 0: never."""
        self.previous = np.zeros(size, np.int64) if both_ways else None
        """For each slot how many rows earlier the step before came, as a negative number."""
        self._open: dict[int, _Tail] = {}

    def add(self, columns: Batch, serial: int, n: int) -> None:
        """Link `n` rows, the first of which has this serial number."""
        size = len(self.next)
        self.next[(serial + np.arange(n)) % size] = 0
        episode = _origin(columns, "episode_id", n)
        step = _origin(columns, "episode_step", n)
        order = np.argsort(episode, kind="stable")
        serials, ids, steps = serial + order, episode[order], step[order]
        goes_on = ~_ends(columns, n)[order]
        counted = "episode_step" in columns
        joined = (ids[1:] == ids[:-1]) & goes_on[:-1]
        if counted:
            joined &= steps[1:] == steps[:-1] + 1
        gaps = np.diff(serials) * joined
        self.next[serials[:-1] % size] = gaps
        if self.previous is not None:
            self.previous[serials[:1] % size] = 0
            self.previous[serials[1:] % size] = -gaps
        self._join_tails(ids, serials, steps, goes_on, counted)

    def _join_tails(
        self,
        ids: np.ndarray,
        serials: np.ndarray,
        steps: np.ndarray,
        goes_on: np.ndarray,
        counted: bool,
    ) -> None:
        """Join the first row of each episode to what is stored of it, and note the last one."""
        first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])).tolist()
        last = [*(i - 1 for i in first[1:]), len(ids) - 1]
        size = len(self.next)
        for a, b in zip(first, last, strict=True):
            episode, begin = int(ids[a]), int(serials[a])
            tail = self._open.pop(episode, None)
            follows = tail is not None and (not counted or int(steps[a]) == tail.step + 1)
            if tail is not None and follows and tail.serial + size > begin:
                self.next[tail.serial % size] = begin - tail.serial
                if self.previous is not None:
                    self.previous[begin % size] = tail.serial - begin
            if goes_on[b]:
                self._open[episode] = _Tail(int(serials[b]), int(steps[b]))
        if len(self._open) > _MANY_OPEN:  # Of episodes that were never finished.
            oldest = int(serials.max()) - size
            self._open = {e: tail for e, tail in self._open.items() if tail.serial > oldest}

    def tails(self) -> np.ndarray:
        """Slots whose link the next `add` may change."""
        serials = np.fromiter((tail.serial for tail in self._open.values()), np.int64)
        return serials % len(self.next)

    def chains(self, serials: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """(B, n) serials of rows and their successors, and which exist; others repeat the last."""
        steps = np.repeat(serials[:, None], n, axis=1)
        exist = np.ones((len(serials), n), bool)
        for k in range(1, n):
            gap = self.next[steps[:, k - 1] % len(self.next)]
            exist[:, k] = exist[:, k - 1] & (gap > 0)
            steps[:, k] = steps[:, k - 1] + np.where(exist[:, k], gap, 0)
        return steps, exist

    def plain_tails(self) -> dict[int, list[int]]:
        """Open episodes as plain values."""
        return {episode: list(tail) for episode, tail in self._open.items()}

    def restore(
        self,
        links: tuple[np.ndarray, np.ndarray],
        slots: np.ndarray,
        tails: dict[int, list[int]],
    ) -> None:
        """Links to the next and to the previous step, those of open episodes included."""
        self.next[slots] = links[0]
        if self.previous is not None:
            self.previous[slots] = links[1]
        self._open = {int(episode): _Tail(*tail) for episode, tail in tails.items()}


def _origin(columns: Batch, name: str, n: int) -> np.ndarray:
    column = columns.get(name)
    return np.zeros(n, np.int64) if column is None else np.asarray(column).reshape(-1)


def _ends(columns: Batch, n: int) -> np.ndarray:
    ended = np.asarray(columns["done"]).reshape(n, -1)[:, 0].astype(bool)
    return ended | np.asarray(columns["end"]).astype(bool) if "end" in columns else ended
