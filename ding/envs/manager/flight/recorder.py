"""Flight recorder: the actions and seeds of running episodes, so that a failure can be replayed.

R is the number of rows: actions of single envs in one step.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ding.envs.manager.columns import leaves
from ding.envs.manager.faults import Fault
from ding.envs.manager.flight.file import (
    Flight,
    describe_env,
    shown,
    versions,
)
from ding.utils.batch import concat, length, stack, take
from ding.utils.plain import NotPlainError, to_plain

logger = logging.getLogger(__name__)

_MOST_FILES = 20
# Steps between two looks for those that no running episode needs; more would leave the cache.
_LOOK_STEPS = 512
# A recorded step costs about so much beside its actions, an object beside the pointer to it.
_STEP_BYTES, _OBJECT_BYTES = 200, 64


class _Step(NamedTuple):
    """Actions of one call of `record`."""

    ids: np.ndarray
    form: Any
    """Dtype and shape of plain arrays; None for columns that are kept as such."""
    actions: Any
    """Bytes, which take a quarter of the time of a copied array; or columns, (R, ...)."""

    @property
    def columns(self) -> Any:
        if self.form is None:
            return self.actions
        dtype, shape = self.form
        return np.frombuffer(self.actions, dtype).reshape(shape)

    @property
    def nbytes(self) -> int:
        if self.form is not None:
            return _STEP_BYTES + len(self.actions)
        return _STEP_BYTES + sum(_nbytes(leaf) for _, leaf in leaves(self.actions, ""))

    def part(self, index: np.ndarray) -> _Step:
        return _Step(self.ids[index], None, take(self.columns, index))


@dataclass
class _Episode:
    seed: int | None = None
    dynamic: bool | None = None
    next_seed: tuple[int, bool | None] | None = None
    """Seed and kind of seed of the next episode, if it gets a new one."""
    resets: int = 0
    episode_seed: int | None = None
    last_seed: int | None = None
    """The seed that the env told last; told again, it is not the seed of the new episode."""
    begin: int = 0
    """The clock when the episode began."""
    lost: int = 0
    """Actions of it that had to make room."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    earlier: list[Any] = field(default_factory=list)
    """Columns of its actions before the run was resumed."""


class FlightRecorder:
    """All actions of the running episodes and the seeds they began with.

    Call `seeded`, `began`, `record` in the order of what happens; one thread at a time.
    """

    def __init__(
        self,
        env_num: int,
        env_fn: Sequence[Callable[[], Any]] = (),
        cfg: Mapping[str, Any] | None = None,
        *,
        most_bytes: int = 64 * 2**20,
    ) -> None:
        cfg = cfg or {}
        self._env_fn = list(env_fn)
        self.directory: str | Path | None = cfg.get("flight_dir")
        self._limits = {name: cfg.get(name) for name in ("step_timeout", "reset_timeout")}
        self._most_bytes = most_bytes
        self._files = 0
        self._episodes = [_Episode() for _ in range(env_num)]
        # Each becomes a `_Step` when it is read: a plain tuple is made in a tenth of the time.
        self._steps: list[tuple[np.ndarray, Any, Any]] = []
        self._clock = 0
        """Steps that were recorded before those in `_steps`."""
        self._look_at = 0

    def record(self, ids: np.ndarray, actions: Any) -> None:
        """Note one action (columns) for each of these envs; `ids` must not be written to later."""
        if len(self._steps) >= self._look_at:
            self._make_room(ids, actions)
        if type(actions) is np.ndarray and not actions.dtype.hasobject:
            self._steps.append((ids, (actions.dtype, actions.shape), actions.tobytes()))
        else:
            self._steps.append((ids, None, _frozen(actions)))

    def _make_room(self, ids: np.ndarray, actions: Any) -> None:
        """Forget the steps before all running episodes, and beyond the memory limit the oldest."""
        self._drop(max(min(episode.begin for episode in self._episodes) - self._clock, 0))
        used = self.nbytes
        if used > self._most_bytes * 3 // 4:
            begin = np.array([episode.begin for episode in self._episodes])
            steps = [step.part(begin[step.ids] <= clock) for clock, step in self._clocked()]
            self._steps = list(steps)
            sizes = np.cumsum([step.nbytes for step in steps])
            count = int(np.searchsorted(sizes, sizes[-1] - self._most_bytes * 3 // 4))
            for step in steps[:count]:
                for i in step.ids.tolist():
                    self._episodes[i].lost += 1
            self._drop(count)
            used = self.nbytes
        count = len(self._steps)
        each = used // count if count else _Step(ids, None, _frozen(actions)).nbytes
        room = max((self._most_bytes - used) // each, 1)
        self._look_at = count + min(max(_LOOK_STEPS - count, count), room)

    def _drop(self, count: int) -> None:
        del self._steps[:count]
        self._clock += count

    @property
    def nbytes(self) -> int:
        return sum(step.nbytes for _, step in self._clocked())

    def _clocked(self) -> Iterator[tuple[int, _Step]]:
        return enumerate(map(_Step._make, self._steps), self._clock)

    def seeded(self, i: int, seed: int, dynamic: bool | None = None) -> None:
        """Call with what `env.seed` is given; it counts from the next `began` on."""
        self._episodes[i].next_seed = (int(seed), dynamic)

    def began(
        self, i: int, kwargs: Mapping[str, Any] | None = None, episode_seed: Any = None
    ) -> None:
        """Call at every attempt at a reset, before it or, with what the env told, after it."""
        episode = self._episodes[i]
        if episode.next_seed is not None:
            (episode.seed, episode.dynamic), episode.next_seed = episode.next_seed, None
            episode.resets, episode.last_seed = 0, None
        episode.resets += 1
        episode.episode_seed = None
        episode.begin, episode.lost, episode.earlier = self._clock + len(self._steps), 0, []
        episode.kwargs = dict(kwargs or {})
        if episode_seed is not None:
            self.told(i, episode_seed)

    def told(self, i: int, episode_seed: Any) -> None:
        """Call once after a reset with the env's `episode_seed`, if it has one."""
        episode = self._episodes[i]
        is_seed = isinstance(episode_seed, (int, np.integer)) and episode_seed >= 0
        seed = int(episode_seed) if is_seed else None
        episode.episode_seed = None if seed == episode.last_seed else seed
        episode.last_seed = seed

    def flight(self, i: int, error: str, traceback: str = "", kind: str = "raised") -> Flight:
        """All that is known of the running episode of env `i`."""
        episode = self._episodes[i]
        actions = self._actions([i])[0]
        step = sum(map(length, actions)) + episode.lost
        actions, reset_kwargs, hindrance = _plain_parts(actions, episode)
        return Flight(
            env_id=i,
            env=describe_env(self._env_fn[i]) if self._env_fn else None,
            kind=kind,
            error=error,
            traceback=traceback,
            seed=episode.seed,
            dynamic_seed=episode.dynamic,
            resets=episode.resets,
            episode_seed=episode.episode_seed,
            step=step,
            actions=actions,
            reset_kwargs=reset_kwargs,
            hindrance=hindrance,
            **self._limits,
            versions=versions(),
            time=time.strftime("%Y-%m-%dT%H:%M:%S"),
        )

    def report(self, i: int, fault: Fault, headline: str | None = None) -> str:
        """Save the flight of env `i`, which ends in this fault, and describe it."""
        return self.saved(self.flight(i, fault.shown, fault.traceback, fault.kind), headline)

    def saved(self, flight: Flight, headline: str | None = None) -> str:
        """The summary of a flight that is saved if there are not too many yet."""
        if self.directory is None or self._files >= _MOST_FILES:
            return flight.summary(headline=headline)
        try:
            path = flight.save(self.directory)
        except OSError as problem:  # The env's own error is what matters.
            logger.warning("cannot save the flight of env %d: %s", flight.env_id, problem)
            return flight.summary(headline=headline)
        self._files += 1
        if self._files == _MOST_FILES:
            logger.warning(
                "%d flights are saved in %s; further ones are not", _MOST_FILES, self.directory
            )
        return flight.summary(path, headline)

    def state_dict(self) -> dict[str, Any]:
        """Plain data; actions that are Python objects count as lost."""
        records = [asdict(episode) for episode in self._episodes]
        for record, parts in zip(records, self._actions(range(len(records))), strict=True):
            record["earlier"] = [part for part in parts if not _has_objects(part)]
            record["lost"] += sum(length(part) for part in parts if _has_objects(part))
            record["begin"] = 0
        return {"episodes": records}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._steps.clear()
        self._clock = self._look_at = 0
        self._episodes = [_Episode(**episode) for episode in state["episodes"]]

    def _actions(self, ids: Iterable[int]) -> list[list[Any]]:
        """Columns of the running episodes of these envs, joined where they have the same form."""
        blocks = list(self._blocks())
        by_env = []
        for i in ids:
            episode = self._episodes[i]
            parts = list(episode.earlier)
            for clock, of_env, columns in blocks:
                mine = np.flatnonzero((of_env == i) & (clock >= episode.begin))
                if len(mine):
                    parts.append(take(columns, mine))
            by_env.append([concat(list(same)) for _, same in groupby(parts, _form)])
        return by_env

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Clock, env ids and actions of all recorded rows; steps of one form at a time."""
        for _, group in groupby(self._clocked(), lambda pair: _form(pair[1].columns)):
            run = list(group)
            clock = np.concatenate([np.full(len(step.ids), at) for at, step in run])
            ids = np.concatenate([step.ids for _, step in run])
            yield clock, ids, concat([step.columns for _, step in run])


def _plain_parts(actions: list[Any], episode: _Episode) -> tuple[list[Any], dict[str, Any], str]:
    """Actions and reset arguments that can be saved, and what hinders a replay."""
    hindrance, kwargs = "", episode.kwargs
    try:
        to_plain(kwargs)
    except NotPlainError as error:
        hindrance = f"an argument of the reset: {error}"
        kwargs = {key: repr(value) for key, value in kwargs.items()}
    try:
        to_plain(actions)
    except NotPlainError as error:
        hindrance = f"an action: {error}"
        actions = [_described(part) for part in actions]
    if episode.lost:
        hindrance = f"its first {episode.lost} actions are not known any more"
    return actions, kwargs, hindrance


def _described(part: Any) -> np.ndarray:
    column = np.empty(length(part), dtype=object)
    column[:] = [str(shown(take(part, k))) for k in range(len(column))]
    return column


def _frozen(tree: Any) -> Any:
    """A copy whose leaves are arrays."""
    if isinstance(tree, dict):
        return {key: _frozen(part) for key, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_frozen(part) for part in tree)
    if isinstance(tree, list):
        return stack(tree)
    return np.array(tree.detach().cpu().numpy() if hasattr(tree, "detach") else tree)


def _form(tree: Any) -> Any:
    return [(name, leaf.dtype, leaf.shape[1:]) for name, leaf in leaves(tree, "")]


def _nbytes(leaf: np.ndarray) -> int:
    return leaf.nbytes + (leaf.size * _OBJECT_BYTES if leaf.dtype == object else 0)


def _has_objects(tree: Any) -> bool:
    return any(leaf.dtype == object for _, leaf in leaves(tree, ""))
