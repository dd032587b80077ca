"""Remembers what led to the present state of every env, so that a failure can be replayed.

R is the number of rows (actions of single envs) in a block.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
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

# More would be slower: their memory would not stay in the cache.
_STAGED_STEPS = 512
_STAGED_BYTES = 2**20
_MOST_FILES = 20
# An object costs about so much beside the pointer to it.
_OBJECT_BYTES = 64


class _Block(NamedTuple):
    clock: np.ndarray
    """(R,) int64: the call of `record` that a row came with."""
    ids: np.ndarray
    """(R,) int32."""
    actions: Any
    """Columns, (R, ...)."""

    @property
    def nbytes(self) -> int:
        columns = sum(_nbytes(leaf) for _, leaf in leaves(self.actions, ""))
        return self.clock.nbytes + self.ids.nbytes + columns

    def part(self, index: np.ndarray) -> _Block:
        return _Block(self.clock[index], self.ids[index], take(self.actions, index))


@dataclass
class _Episode:
    seed: int | None = None
    dynamic: bool | None = None
    coming: tuple[int, bool | None] | None = None
    """Seed and kind of seed of the next episode, if it gets a new one."""
    resets: int = 0
    episode_seed: int | None = None
    said: int | None = None
    """What the env said last; an env that says the same again did not seed its new episode."""
    begin: int = 0
    """The clock when the episode began."""
    lost: int = 0
    """Actions of it that had to make room."""
    kwargs: dict[str, Any] = field(default_factory=dict)


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
        # Ids, shape and bytes of recent steps (or ids, None and a copy). Most are forgotten as they
        # are: only those of long episodes and failures become blocks. Small arrays are copied in a
        # quarter of the time into bytes that it takes to write them into a larger array.
        self._staged: list[tuple[np.ndarray, Any, Any]] = []
        self._staged_most = _STAGED_STEPS
        self._dtype: Any = None
        self._blocks: deque[_Block] = deque()
        self._clock = 0
        self._bytes = 0
        self._sweep_at = _STAGED_BYTES

    def record(self, ids: np.ndarray, actions: Any) -> None:
        """Note one action (columns) for each of these envs; `ids` must not be written to later."""
        staged = self._staged
        if len(staged) >= self._staged_most:
            self._make_room()
        if type(actions) is np.ndarray and actions.dtype is self._dtype:
            staged.append((ids, actions.shape, actions.tobytes()))
        else:
            self._stage_other(ids, actions)

    def _stage_other(self, ids: np.ndarray, actions: Any) -> None:
        copied = _frozen(actions)
        if type(copied) is np.ndarray and copied.dtype.kind in "biuf" and copied.dtype.isnative:
            self._flush()
            self._dtype = copied.dtype  # From now on the quick way.
        if not self._staged:
            size = sum(_nbytes(leaf) for _, leaf in leaves(copied, ""))
            self._staged_most = min(max(_STAGED_BYTES // max(size, 1), 1), _STAGED_STEPS)
        self._staged.append((ids, None, copied))

    def _make_room(self) -> None:
        """Forget the steps before all running episodes; what remains may become a block."""
        stale = min(episode.begin for episode in self._episodes) - self._clock
        if stale > 0:
            del self._staged[:stale]
            self._clock += stale
        if len(self._staged) > self._staged_most // 2:
            self._flush()

    def seeded(self, i: int, seed: int, dynamic: bool | None = None) -> None:
        """Call with what `env.seed` is given; it counts from the next `began` on."""
        self._episodes[i].coming = (int(seed), dynamic)

    def began(
        self, i: int, kwargs: Mapping[str, Any] | None = None, episode_seed: Any = None
    ) -> None:
        """Call at every attempt at a reset, before it or, with what the env told, after it."""
        episode = self._episodes[i]
        if episode.coming is not None:
            (episode.seed, episode.dynamic), episode.coming = episode.coming, None
            episode.resets, episode.said = 0, None
        episode.resets += 1
        episode.episode_seed = None
        episode.begin, episode.lost = self._clock + len(self._staged), 0
        episode.kwargs = dict(kwargs or {})
        if episode_seed is not None:
            self.told(i, episode_seed)

    def told(self, i: int, episode_seed: Any) -> None:
        """Call once after a reset with the env's `episode_seed`, if it has one."""
        episode = self._episodes[i]
        is_seed = isinstance(episode_seed, (int, np.integer)) and episode_seed >= 0
        seed = int(episode_seed) if is_seed else None
        episode.episode_seed = None if seed == episode.said else seed
        episode.said = seed

    def steps(self, i: int) -> int:
        """Actions of the running episode."""
        return sum(map(length, self._actions(i))) + self._episodes[i].lost

    def flight(self, i: int, error: str, traceback: str = "", kind: str = "raised") -> Flight:
        """All that is known of the running episode of env `i`."""
        episode, actions = self._episodes[i], self._actions(i)
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
        self._flush()
        self._sweep()
        kept = [block for block in self._blocks if not _has_objects(block.actions)]
        episodes = [asdict(episode) for episode in self._episodes]
        for block in self._blocks:
            if _has_objects(block.actions):
                for i in block.ids.tolist():
                    episodes[i]["lost"] += 1
        return {"clock": self._clock, "episodes": episodes, "blocks": [b._asdict() for b in kept]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._staged.clear()
        self._clock = state["clock"]
        self._episodes = [_Episode(**episode) for episode in state["episodes"]]
        self._blocks = deque(_Block(**block) for block in state["blocks"])
        self._bytes = sum(block.nbytes for block in self._blocks)

    def _actions(self, i: int) -> list[Any]:
        """Columns of env i's running episode, joined where they have the same form."""
        self._flush()
        begin = self._episodes[i].begin
        parts = []
        for block in self._blocks:
            mine = np.flatnonzero((block.ids == i) & (block.clock >= begin))
            if len(mine):
                parts.append(take(block.actions, mine))
        return [concat(list(same)) for _, same in groupby(parts, _form)]

    def _flush(self) -> None:
        """Staged steps become blocks; blocks that no running episode needs are let go."""
        for block in _blocks_of(self._staged, self._clock, self._dtype):
            self._blocks.append(block)
            self._bytes += block.nbytes
        self._clock += len(self._staged)
        self._staged.clear()
        oldest = min(episode.begin for episode in self._episodes)
        while self._blocks and self._blocks[0].clock[-1] < oldest:
            self._bytes -= self._blocks.popleft().nbytes
        if self._bytes > self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Drop the rows of episodes that are over, and if that is not enough the oldest blocks."""
        begin = np.array([episode.begin for episode in self._episodes])
        swept = (block.part(block.clock >= begin[block.ids]) for block in self._blocks)
        self._blocks = deque(block for block in swept if len(block.ids))
        self._bytes = sum(block.nbytes for block in self._blocks)
        while self._bytes > self._most_bytes * 3 // 4:
            block = self._blocks.popleft()
            self._bytes -= block.nbytes
            for i in block.ids.tolist():
                self._episodes[i].lost += 1
        self._sweep_at = min(max(2 * self._bytes, _STAGED_BYTES), self._most_bytes)


def _blocks_of(
    staged: list[tuple[np.ndarray, Any, Any]], clock: int, dtype: Any
) -> Iterator[_Block]:
    """Runs of steps whose actions have the same form, each as one block."""
    shapes = set(map(itemgetter(1), staged))
    is_uniform = None not in shapes and len({shape[1:] for shape in shapes}) == 1
    runs = [staged] if is_uniform else [list(run) for _, run in groupby(staged, _staged_form)]
    for run in runs:
        ids, shapes_of_run, actions = zip(*run, strict=True)
        if shapes_of_run[0] is None:
            columns = concat(actions)
        else:
            flat = np.frombuffer(b"".join(actions), dtype)
            columns = flat.reshape(-1, *shapes_of_run[0][1:])
        clocks, clock = np.arange(clock, clock + len(run)), clock + len(run)
        if len(set(map(id, ids))) == 1:  # All envs step together, as they mostly do.
            yield _Block(clocks.repeat(len(ids[0])), _tiled(ids[0], len(run)), columns)
        else:
            counts = list(map(len, ids))
            yield _Block(clocks.repeat(counts), np.concatenate(ids).astype(np.int32), columns)


def _tiled(ids: np.ndarray, times: int) -> np.ndarray:
    return np.broadcast_to(ids.astype(np.int32), (times, len(ids))).ravel()


def _staged_form(entry: tuple[np.ndarray, Any, Any]) -> Any:
    _, shape, actions = entry
    return _form(actions) if shape is None else shape[1:]


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
