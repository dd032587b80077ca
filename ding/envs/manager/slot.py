"""Slot: the record of one env and the state machine that the env goes through.

    state             event                                          next state
    VOID              launch                                         INIT
    INIT              the first reset begins                         RESET
    RESET             the first observation of an episode arrives    RUN
    RESET             an attempt fails, `max_retry` is not reached   RESET
    RUN               a step succeeds                                RUN
    RUN               an episode ends, more are to come              RESET, or without
                                                                     auto_reset NEED_RESET
    RUN               episode number `episode_num` ends              DONE
    RUN               a step fails, `max_retry` is not reached       RESET
    RUN, RESET        failure number `max_retry` in a row            ERROR
    all but VOID      reset() of the manager                         RESET
    all               close()                                        VOID

Executors (in this process, in worker processes, in threads, one vector env for all) report events;
only `SlotTable.enter` moves a slot. N is the number of slots.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from ding.utils.batch import ByEnv, stacked_of

_EVALUATION = 0xE7A1


class EnvState(IntEnum):
    VOID = 0
    INIT = 1
    RUN = 2
    RESET = 3
    DONE = 4
    ERROR = 5
    NEED_RESET = 6


# By the number of the present state. A tuple is searched by identity, a set would hash the enum.
_NEXT: tuple[tuple[EnvState, ...], ...] = (
    (EnvState.INIT,),
    (EnvState.RESET,),
    (EnvState.RESET, EnvState.NEED_RESET, EnvState.DONE, EnvState.ERROR),
    (EnvState.RUN, EnvState.ERROR),
    *((EnvState.RESET,),) * 3,
)


@dataclass
class Instance:
    """One env object of a slot; with spare envs two of them take turns."""

    number: int
    """Row in the memory that an executor shares with its workers."""
    renewals: int = 0
    """How often a new env object took the place of a broken one."""
    seed_is_due: bool = False
    """The seed of the slot has not reached the env yet."""
    attempts: int = 0
    """Failed attempts at the present reset."""
    is_reset: bool = False
    """The first observation of an episode waits for its first action."""
    reset_began: float = 0.0
    retry_at: float | None = None
    """When the next attempt at a reset begins, after one that failed."""


@dataclass
class Slot:
    """All that is known of one env id."""

    env_id: int
    instances: list[Instance]
    playing: int = 0
    """Index of the instance whose episode is running."""
    state: EnvState = EnvState.VOID
    episodes: int = 0
    """Episodes that ended since the last full reset."""
    failures: int = 0
    """Steps in a row that failed."""
    seed: int | None = None
    dynamic_seed: bool | None = None
    reset_kwargs: dict[str, Any] = field(default_factory=dict)
    replay_path: str | None = None

    @property
    def instance(self) -> Instance:
        return self.instances[self.playing]

    def clear(self) -> None:
        """Forget all but the seed and where replays are saved: what outlives `close`."""
        self.instances = [Instance(instance.number) for instance in self.instances]
        self.playing, self.state, self.episodes, self.failures = 0, EnvState.VOID, 0, 0
        self.reset_kwargs = {}

    def set_seed(self, seed: int, dynamic: bool | None) -> None:
        self.seed, self.dynamic_seed = int(seed), dynamic
        self.send_seed()

    def send_seed(self) -> None:
        """Seed all instances at their next reset."""
        for instance in self.instances:
            instance.seed_is_due = self.seed is not None

    def repeat_static_seed(self) -> None:
        if self.dynamic_seed is False:
            for instance in self.instances:
                instance.renewals = 0
            self.send_seed()

    def draw_new_seeds(self) -> None:
        """Episodes to come begin anew; with a dynamic seed they differ from the run's first."""
        for instance in self.instances:
            instance.renewals += self.dynamic_seed is not False
        self.send_seed()

    def renewed(self, instance: Instance) -> None:
        """A new env object takes the place of a broken one; it must not replay what broke that."""
        instance.renewals += 1
        instance.seed_is_due = self.seed is not None

    def seed_of(self, instance: Instance) -> int | None:
        is_spare = instance is not self.instances[0]
        if self.seed is None or not (instance.renewals or is_spare):
            return self.seed
        # Nor must a spare env play what its twin plays.
        return seed_after(self.seed, instance.renewals, *([1] if is_spare else []))

    def state_dict(self) -> dict[str, Any]:
        return {**asdict(self), "state": int(self.state)}  # Checkpoints take plain data only.

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on from a saved record; where replays are saved stays as set here."""
        for name, value in saved.items():
            if name not in ("instances", "replay_path"):
                setattr(self, name, value)
        self.state = EnvState(saved["state"])
        self.reset_kwargs = dict(saved["reset_kwargs"])
        self.instances = [Instance(**instance) for instance in saved["instances"]]


class SlotTable:
    """All slots of a manager, and the columns that every step reads instead of single records."""

    def __init__(self, count: int, cfg: Mapping[str, Any]) -> None:
        self.episode_num, self.auto_reset = cfg["episode_num"], bool(cfg["auto_reset"])
        per_slot = range(2 if cfg.get("spare_envs") else 1)
        self._slots = [Slot(i, [Instance(i + k * count) for k in per_slot]) for i in range(count)]
        self.all_ids = np.arange(count)
        self.lock = threading.RLock()
        """Guards slots whose events and commands come from several threads."""
        self.clear()

    def clear(self) -> None:
        for slot in self._slots:
            slot.clear()
        self.waiting, self.busy = np.zeros((2, len(self)), dtype=bool)
        """(N,): waits for an action; has a step sent that was not handed out yet."""
        self.ready: np.ndarray | None = None
        """Ids of the envs that wait for an action; None after a change."""
        self.any_failures = False
        self.n_reset = 0
        """Slots in state RESET."""
        self.is_open = False

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots)

    def __getitem__(self, i: int) -> Slot:
        return self._slots[i]

    def instances(self) -> list[tuple[Slot, Instance]]:
        """All instances by their number."""
        pairs = [(slot, instance) for slot in self._slots for instance in slot.instances]
        return sorted(pairs, key=lambda pair: pair[1].number)

    def enter(self, slot: Slot, state: EnvState) -> None:
        """Move a slot, as the table above allows, and the columns with it."""
        before, i = slot.state, slot.env_id
        if state is before:
            return
        if state not in _NEXT[before]:
            raise RuntimeError(f"env {i} is {before.name} and cannot become {state.name}")
        slot.state, self.ready = state, None
        self.n_reset += (state is EnvState.RESET) - (before is EnvState.RESET)
        if state is EnvState.RUN:
            self.waiting[i] = not self.busy[i]
        elif before is EnvState.RUN:
            self.waiting[i] = False

    def episode_ended(self, slot: Slot, *, abnormal: bool) -> bool:
        """Count an episode; whether the env must be reset now."""
        slot.episodes += not abnormal
        if slot.episodes >= self.episode_num:
            self.enter(slot, EnvState.DONE)
            return False
        self.enter(slot, EnvState.RESET if self.auto_reset else EnvState.NEED_RESET)
        return self.auto_reset

    def goes_on(self, slot: Slot, abnormal: bool) -> bool:
        """Whether another episode follows by itself when this one ends."""
        return self.auto_reset and slot.episodes + (not abnormal) < self.episode_num

    def ready_ids(self) -> np.ndarray:
        ids = self.ready
        if ids is None:
            self.check_open()
            all_wait = np.count_nonzero(self.waiting) == len(self)
            self.ready = ids = self.all_ids if all_wait else np.flatnonzero(self.waiting)
        return ids

    def admit(self, actions: Mapping[int, Any]) -> tuple[np.ndarray, Any]:
        """Ids and columns of actions; raises unless all these envs wait for one."""
        if not actions:
            raise ValueError("step() got no actions")
        if self.ready is None or not isinstance(actions, ByEnv) or actions.ids is not self.ready:
            self.check_open()
            self.check_waiting(named_ids(actions))
        ids, stacked = stacked_of(actions)
        all_ids = self.all_ids
        if ids is not all_ids and len(ids) == len(all_ids) and ids.tolist() == all_ids.tolist():
            ids = all_ids
        return ids, stacked

    def seed(self, seed: Any, dynamic: bool | None) -> list[Slot]:
        """Note seeds; the slots that they are for."""
        by_env = self._seed_by_env(seed)
        for i, one in by_env.items():
            self._slots[i].set_seed(one, dynamic)
        return [self._slots[i] for i in by_env]

    def _seed_by_env(self, seed: Any) -> dict[int, int]:
        if isinstance(seed, (int, np.integer)):
            return {i: _in_range(int(seed) + i) for i in range(len(self))}
        if isinstance(seed, Mapping):
            self.check_known(seed)
            return dict(seed)
        if isinstance(seed, (list, tuple)):
            if len(seed) != len(self):
                raise ValueError(f"got {len(seed)} seeds for {len(self)} envs")
            return dict(enumerate(seed))
        raise TypeError(f"seed must be an int, a list or a dict by env id, got {seed!r}")

    def check_known(self, ids: Iterable[Any]) -> None:
        for i in ids:
            if not isinstance(i, (int, np.integer)) or not 0 <= i < len(self):
                raise ValueError(f"unknown env id {i!r}: there are envs 0 to {len(self) - 1}")

    def check_open(self) -> None:
        if not self.is_open:
            raise RuntimeError("the env manager is not launched: call launch() first")

    def check_waiting(self, ids: list[Any]) -> None:
        is_known = len(ids) == 1 and type(ids[0]) is int and 0 <= ids[0] < len(self)
        if is_known and self.waiting.item(ids[0]):
            return
        self.check_known(ids)
        if len(set(ids)) < len(ids):
            raise ValueError(f"step() got several actions for one env: {ids}")
        for i in ids:
            if not self.waiting[i]:
                state = "steps already" if self.busy[i] else f"is {self[i].state.name}"
                ready = np.flatnonzero(self.waiting).tolist()
                raise RuntimeError(f"env {i} cannot step: it {state}, not RUN (ready are {ready})")

    def withdraw(self) -> list[EnvState]:
        """Make all slots VOID, with what else they hold; the states before."""
        states = [slot.state for slot in self._slots]
        for slot in self._slots:
            slot.state = EnvState.VOID
        self.waiting[:], self.ready, self.n_reset = False, None, 0
        return states

    def state_dict(self) -> list[dict[str, Any]]:
        return [slot.state_dict() for slot in self._slots]

    def check_state(self, saved: Sequence[Mapping[str, Any]]) -> None:
        if len(saved) != len(self):
            raise ValueError(f"state is of {len(saved)} envs, here are {len(self)}")
        if len(saved[0]["instances"]) != len(self[0].instances):
            raise ValueError("the state is of a manager with another setting of spare_envs")

    def load_state_dict(self, saved: Sequence[Mapping[str, Any]]) -> None:
        for slot, record in zip(self._slots, saved, strict=True):
            slot.load_state_dict(record)
        self.waiting[:] = [slot.state is EnvState.RUN for slot in self._slots]
        self.n_reset = sum(slot.state is EnvState.RESET for slot in self._slots)
        self.any_failures = any(slot.failures for slot in self._slots)


def named_ids(actions: Mapping[int, Any]) -> list[Any]:
    is_stacked = isinstance(actions, ByEnv) and actions.is_stacked
    return actions.ids.tolist() if is_stacked else list(actions)  # type: ignore[attr-defined]


def seed_env(env: Any, seed: int, dynamic: bool | None) -> None:
    """Seed an env and its action space; `dynamic` None leaves the kind of seed to the env."""
    env.seed(seed) if dynamic is None else env.seed(seed, dynamic)
    if hasattr(env.action_space, "seed"):
        env.action_space.seed(seed)


def seed_after(*words: int) -> int:
    """Draw a seed from a base seed and counts of what happened since.

    ALE and other simulators in C take signed 32-bit seeds, so none is above 2**31 - 1.
    """
    return _in_range(int(np.random.SeedSequence(words).generate_state(1)[0]))


def evaluation_seeds(seed: int, n: int, again: int = 0) -> list[int]:
    """Seeds of the envs that evaluate a run: no two run seeds share any.

    `again` counts evaluations that are played anew from other starts.
    """
    return [seed_after(seed, _EVALUATION, again, i) for i in range(n)]


def _in_range(seed: int) -> int:
    return seed if seed < 0 else seed % 2**31  # Envs refuse a negative seed themselves.
