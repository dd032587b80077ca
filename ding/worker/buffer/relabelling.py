"""Relabelling: other rewards or goals for steps at the moment they are drawn.

What is stored never changes. A part sees `Drawn`; a plain function sees the single steps alone.
Letters in shapes: B batch, n steps of a chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ding.utils.batch import Batch
from ding.utils.errors import ConfigError


class Episodes(Protocol):
    """Neighbours of stored steps in their episodes."""

    def left(self, serials: np.ndarray) -> np.ndarray: ...

    def passed(self, serials: np.ndarray) -> np.ndarray: ...

    def read(self, serials: np.ndarray, ahead: np.ndarray, names: Sequence[str]) -> Batch: ...


@dataclass(frozen=True)
class Drawn:
    """Steps of one draw, and what else of their episodes is stored."""

    steps: Batch
    """(B*n, ...) single steps, one chain after the other."""
    exist: np.ndarray
    """(B, n) whether the chain has that step; those that are missing repeat the last one."""
    rng: np.random.Generator
    """The buffer's own, saved with it."""
    source: str = "buffer"
    """Name of the buffer."""
    serials: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    episodes: Episodes | None = None

    def later(self, ahead: np.ndarray, names: Sequence[str] = ()) -> Batch:
        """Columns (all, or those named) of the step so many ahead of each row, (B*n, ...)."""
        return self._linked.read(self.serials, ahead, names)

    @cached_property
    def left(self) -> np.ndarray:
        """(B*n,) stored steps that follow each row in its episode."""
        return self._linked.left(self.serials)

    @cached_property
    def passed(self) -> np.ndarray:
        """(B*n,) stored steps that precede each row in its episode."""
        return self._linked.passed(self.serials)

    @property
    def _linked(self) -> Episodes:
        if self.episodes is None:
            raise ConfigError(
                "relabelling looks at other steps of an episode, which this replay buffer can't "
                "find; set policy.other.replay_buffer.links = True"
            )
        return self.episodes


@runtime_checkable
class Relabeller(Protocol):
    """Part of a run that gives drawn steps other rewards or goals."""

    def relabel(self, drawn: Drawn) -> Batch:
        """Return the steps with some columns replaced, leaving the given arrays as they are."""


Relabel = Relabeller | Callable[[Batch], Batch]


def relabelled(relabel: Relabel, drawn: Drawn) -> Batch:
    if isinstance(relabel, Relabeller):
        return relabel.relabel(drawn)
    return relabel(drawn.steps)


class Chain:
    """One relabelling after the other."""

    def __init__(self, parts: Sequence[Relabel]) -> None:
        self._parts = tuple(parts)

    def relabel(self, drawn: Drawn) -> Batch:
        for part in self._parts:
            drawn = replace(drawn, steps=relabelled(part, drawn))
        return drawn.steps


def relabel_options(parts: Sequence[Relabel]) -> dict[str, Any]:
    """Arguments of `sample` that apply these parts; none where there are none."""
    return {"relabel": Chain(parts)} if parts else {}
