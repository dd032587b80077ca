"""Envs in workers: begun, reset, watched over, and healed when they break.

A *unit* is an env that really exists in a worker. Every env id has one; with spare envs it has two
that take turns, so that one is reset while the other plays.
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ding.envs.manager.deadline import EnvTimeoutError
from ding.envs.manager.old_interface import EnvManager, EnvState, ResetParam
from ding.envs.manager.slot import seed_after
from ding.envs.manager.workers.channel import ANSWER, DONE, Answer, Command, Fault, Phase
from ding.envs.manager.workers.crew import Crew, Member
from ding.envs.manager.workers.remote import Calls
from ding.envs.manager.workers.results import Results, SpaceMisfitError
from ding.envs.manager.workers.watchdog import Watchdog
from ding.envs.manager.workers.worker import EnvSetup
from ding.utils.batch import ByEnv
from ding.utils.errors import EnvError

logger = logging.getLogger(__name__)

_STEP_ENDED = int(Answer.STEP)


class CrewedEnvManager(EnvManager):
    """Seeds, resets, answers and failures; what a step is, subclasses say."""

    _results: Results
    _watchdog: Watchdog

    def __init__(
        self, env_fn: Sequence[Callable[[], Any]], cfg: Mapping[str, Any] | None = None
    ) -> None:
        self._lock = threading.RLock()
        self._fits = True  # Observations are as the observation space says.
        super().__init__(env_fn, cfg)

    def _clear(self) -> None:
        super()._clear()
        count = self.env_num
        units = count * (2 if self._cfg["spare_envs"] else 1)
        self._crew: Crew | None = None
        self._unit_of = np.arange(count)
        self._single_ids = list(np.arange(count).reshape(count, 1))
        self._renewals = [0] * units
        # By env id: waits for an action; has a step sent and not handed out; is newly reset.
        self._waiting, self._busy, self._fresh = np.zeros((3, count), dtype=bool)
        self._has_fresh = False
        self._ready_units = np.zeros(units, dtype=bool)
        # Units whose reset is under way, and since when.
        self._resetting: dict[int, float] = {}
        self._attempts: dict[int, int] = {}
        self._retry_at: dict[int, float] = {}
        self._lost: dict[int, Fault] = {}
        self._failed: set[int] = set()
        self._ended: list[int] = []
        self._calls = Calls()
        # What `waiting_obs` would give, as long as that is known.
        self._cached: ByEnv | None = None
        self._launching = False

    @property
    def _live(self) -> Crew:
        if self._crew is None:
            raise RuntimeError("the env manager is not launched: call launch() first")
        return self._crew

    @property
    def in_flight(self) -> int:
        """Envs with a step sent and not received."""
        return int(np.count_nonzero(self._busy))

    def _waiting_ids(self) -> list[int]:
        return np.flatnonzero(self._waiting).tolist()

    def _seeded_units(self) -> Iterable[int]:
        return (u for u in range(len(self._renewals)) if self._seeds[u % self.env_num] is not None)

    def _units_of(self, ids: Iterable[int]) -> list[int]:
        spares = range(0, len(self._renewals), self.env_num)
        return [i + spare for spare in spares for i in ids]

    def seed(
        self, seed: int | Sequence[int] | Mapping[int, int], dynamic_seed: bool | None = None
    ) -> None:
        """Seed the next reset, and with `dynamic_seed=False` every later full `reset()` again."""
        named = self._seed_by_env(seed)
        before = set(self._unsent)
        super().seed(seed, dynamic_seed)
        self._unsent = before | set(self._units_of(named))
        if not self.closed:
            self._settle()
            for unit in self._units_of(named):
                self._prepare(unit)

    def _seed_of(self, unit: int) -> int | None:
        seed, renewals = self._seeds[unit % self.env_num], self._renewals[unit]
        if seed is None or (unit < self.env_num and not renewals):
            return seed
        # Nor must a spare env play what its twin plays.
        words = [renewals] if unit < self.env_num else [renewals, 1]
        return seed_after(seed, *words)

    def _prepare(self, unit: int) -> None:
        """Tell the worker what the coming resets of a unit need."""
        i = unit % self.env_num
        seed = self._seed_of(unit) if unit in self._unsent else None
        setup = EnvSetup(self._reset_params[i], seed, self._dynamic[i], self._replay_paths[i])
        self._command(unit, Command.PREPARE, pickle.dumps(setup))

    def _note_seed(self, unit: int) -> None:
        """The env has got the seed that was sent for it."""
        i, seed = unit % self.env_num, self._seed_of(unit)
        if unit in self._unsent:
            self._unsent.discard(unit)
            if seed is not None and self._unit_of[i] == unit:
                self._flights.seeded(i, seed, self._dynamic[i])

    def reset(self, reset_param: ResetParam | None = None) -> None:
        """Begin new episodes in all envs, or in the given ones; arguments are kept for later."""
        self._check_open()
        ids = list(range(self.env_num) if reset_param is None else reset_param)
        self._check_known(ids)
        self._settle()
        self._forget_steps(set(ids))
        self._remember(reset_param or {})
        for i in ids:
            if reset_param is None or self._states[i] == EnvState.DONE:
                self._episodes[i] = 0
        for unit in self._units_of(ids):
            if reset_param is None and self._dynamic[unit % self.env_num] is False:
                self._unsent.add(unit)
                self._renewals[unit] = 0
            self._prepare(unit)
            self._begin_reset(unit)
        self._settle()

    def _forget_steps(self, ids: set[int]) -> None:
        self._ended = [unit for unit in self._ended if unit % self.env_num not in ids]
        self._busy[list(ids)] = False
        for i in ids:
            self._lost.pop(i, None)
            self._failures.pop(i, None)

    def _begin_reset(self, unit: int, *, renew: bool = False) -> None:
        i = unit % self.env_num
        if self._unit_of[i] == unit:
            self._states[i] = EnvState.RESET
            self._waiting[i], self._cached = False, None
        self._ready_units[unit] = False
        self._resetting[unit] = time.monotonic()
        if renew:
            self._command(unit, Command.RENEW)
        self._command(unit, Command.RESET)

    def _settle(self) -> None:
        """Wait until no step and no reset is under way."""
        while True:
            self._note_own_resets()
            if self.in_flight == len(self._ended) and not self._resetting:
                return
            self._pump()

    def _note_own_resets(self) -> None:
        """Envs whose last step is here but not handed out may be reset by their workers."""
        block = self._live.block
        for unit in self._ended:
            own = block["flags"][unit] & DONE and block["may_reset"][unit]
            if own and not self._ready_units[unit] and unit not in self._attempts:
                self._resetting.setdefault(unit, time.monotonic())

    def _reset_ended(self, unit: int) -> None:
        i = unit % self.env_num
        self._resetting.pop(unit, None)
        self._attempts.pop(unit, None)
        self._note_seed(unit)
        self._ready_units[unit] = True
        if self._unit_of[i] == unit and self._states[i] == EnvState.RESET:
            self._enter(i)

    def _enter(self, i: int) -> None:
        """An env that was reset begins to play."""
        unit, block = int(self._unit_of[i]), self._live.block
        self._states[i] = EnvState.RUN
        self._fresh[i] = self._has_fresh = True
        self._waiting[i] = not self._busy[i]
        self._cached = None
        self._flights.began(i, self._reset_params[i], int(block["episode_seed"][unit]))
        self._allow_reset(i, unit)

    def _allow_reset(self, i: int, unit: int) -> None:
        """Whether the worker shall reset the env by itself when the episode is over."""
        more = self._episodes[i] + 1 < self._cfg["episode_num"]
        self._live.block["may_reset"][unit] = bool(self._cfg["auto_reset"] and more)

    def _command(self, unit: int, kind: Command, pickled: bytes = b"") -> None:
        self._send_rest(*self._live.command(unit, kind, pickled))

    def _send_rest(self, member: Member, data: bytes) -> None:
        """Also what is longer than a pipe; answers are read meanwhile, lest both wait."""
        view = memoryview(data)
        while view:
            view = view[self._live.send_some(member, view) :]
            if view:
                time.sleep(1e-3)  # Not `_pump`: another thread may be waiting in it.
                self._take_note(self._live)

    def _pump(self, timeout: float | None = None) -> None:
        """Wait for news of the workers, for a while at most, and take note of all there are."""
        crew = self._live
        limit = self._watchdog.patience
        if timeout is not None and timeout < limit:
            limit = timeout
        if self._retry_at:
            soonest = min(self._retry_at.values()) - time.monotonic()
            limit = min(limit, max(soonest, 0.0))
        crew.wait(limit)
        self._take_note(crew)

    def _take_note(self, crew: Crew) -> None:
        with self._lock:
            self._take_answers(crew)
            for w in crew.dead():
                self._bury(w)
            now = time.monotonic()
            if self._watchdog.is_due(now):
                self._check_health(crew, now)
            if self._retry_at:
                self._retry(now)

    def _take_answers(self, crew: Crew) -> None:
        for kind, incarnation, unit, count in ANSWER.iter_unpack(crew.answers()):
            if incarnation != crew.members[crew.worker_of[unit]].incarnation:
                continue  # The worker was given up meanwhile.
            if kind == _STEP_ENDED:
                self._ended.extend(range(unit, unit + count))
            else:
                self._take_answer(crew, kind, unit)

    def _take_answer(self, crew: Crew, kind: int, unit: int) -> None:
        if kind == Answer.FIRST:
            self._reset_ended(unit)
            return
        w = crew.worker_of[unit]
        try:
            sent = crew.members[w].reader.read(self._watchdog.answer_limit)
        except (EOFError, TimeoutError):
            crew.kill(w)  # Its sentinel tells the rest.
            return
        if kind == Answer.STEP_WITH:
            self._results.received_step(unit, sent)
            self._ended.append(unit)
        elif kind == Answer.FIRST_WITH:
            self._results.received_first(unit, sent)
            self._reset_ended(unit)
        elif kind == Answer.REPLY:
            self._calls.answered(unit, sent)
        elif sent.phase == Phase.STEP:
            self.faults[sent.kind] += 1
            self._step_failed(unit, sent)
        else:
            if sent.phase == Phase.RESET:
                self._note_seed(unit)
            self._reset_failed(unit, sent)

    def _step_failed(self, unit: int, fault: Fault) -> None:
        """An abnormal step stands in for the one that failed, and a new episode begins."""
        i = unit % self.env_num
        self._results.put_broken(unit, fault.told)
        self._ended.append(unit)
        self._failed.add(i)
        if fault.kind != "lost":
            self._failures[i] = self._failures.get(i, 0) + 1
            if self._failures[i] >= self._max_retry:
                raise self._failure(i, fault)
        logger.warning("Dropping an episode: %s", self._report(i, fault))
        self._begin_again(unit)

    def _reset_failed(self, unit: int, fault: Fault) -> None:
        i = unit % self.env_num
        if self._launching and fault.kind == "shape":
            self.close()
            raise SpaceMisfitError(fault.told)
        if fault.kind in ("raised", "nan", "shape"):
            self.faults["reset"] += 1
            fault = replace(fault, kind="reset")
        if self._unit_of[i] == unit:
            seed = int(self._live.block["episode_seed"][unit])
            self._flights.began(i, self._reset_params[i], seed)
        self._resetting.setdefault(unit, time.monotonic())
        if fault.kind != "lost":
            self._attempts[unit] = self._attempts.get(unit, 0) + 1
            if self._attempts[unit] >= self._max_retry:
                headline = f"Env {i} reset has exceeded max retries({self._max_retry}), "
                headline += f"and the latest exception is: {fault.shown}"
                raise self._failure(i, fault, headline)
            logger.warning("Trying again: %s", self._report(i, fault))
            self._retry_at[unit] = time.monotonic() + self._cfg["retry_waiting_time"]
        else:
            self._begin_again(unit)

    def _retry(self, now: float) -> None:
        for unit in [unit for unit, due in self._retry_at.items() if due <= now]:
            del self._retry_at[unit]
            self._begin_again(unit)

    def _begin_again(self, unit: int) -> None:
        """Reset an env that broke, as a new one if the config says so."""
        renew = self._cfg["retry_type"] == "renew"
        if renew:
            self._renewed(unit)
        self._begin_reset(unit, renew=renew)

    def _renewed(self, unit: int) -> None:
        self._renewals[unit] += 1
        if self._seeds[unit % self.env_num] is not None:
            self._unsent.add(unit)
        self._prepare(unit)

    def _report(self, i: int, fault: Fault, headline: str | None = None) -> str:
        flight = self._flights.flight(i, fault.shown, fault.traceback, fault.kind)
        return self._flights.saved(flight, headline)

    def _failure(self, i: int, fault: Fault, headline: str | None = None) -> EnvError:
        """The error that ends it all; every process is gone when it is raised."""
        report = self._report(i, fault, headline)
        self.close()
        error = (EnvTimeoutError if fault.kind == "timeout" else EnvError)(report)
        error.__cause__ = fault.cause()
        return error

    def _check_health(self, crew: Crew, now: float) -> None:
        """Give up on workers that take too long; look for dead ones that nobody told of."""
        crew.look_for_dead()
        overdue = self._watchdog.overdue(crew.block, self.env_num, now, self._owes_answer)
        for w, why in list(overdue):
            self._bury(w, timeout=why)

    def _owes_answer(self, w: int) -> bool:
        return any(
            unit in self._calls.pending
            or (unit in self._resetting and unit not in self._retry_at)
            or self._steps_now(unit)
            for unit in self._live.members[w].units
        )

    def _steps_now(self, unit: int) -> bool:
        i = unit % self.env_num
        return bool(self._busy[i]) and self._unit_of[i] == unit and unit not in self._ended

    def _bury(self, w: int, timeout: str = "") -> None:
        """Replace a worker that died or must die; decide what that means for each of its envs."""
        crew = self._live
        obituary = crew.kill(w)
        self._take_answers(crew)
        self._note_own_resets()
        code = int(crew.block["running"][w])
        units = crew.members[w].units
        crew.restart(w)
        culprit = code % len(self._renewals) if code >= 0 else self._suspect(units)
        for unit in units:
            self._renewed(unit)
        for unit in units:
            self._mourn(
                unit,
                timeout or f"its process {obituary}",
                guilty=unit == culprit,
                kind="timeout" if timeout else "died",
            )

    def _suspect(self, units: range) -> int:
        """Who is to be charged with a death that came between two calls."""
        return min(units, key=lambda u: (not self._steps_now(u), u not in self._resetting))

    def _mourn(self, unit: int, told: str, *, guilty: bool, kind: str) -> None:
        i = unit % self.env_num
        if not guilty:
            kind, told = "lost", f"the process that it shared ended: {told}"
        error = TimeoutError(told) if kind == "timeout" else RuntimeError(told)
        fault = Fault(kind, Phase.STEP, repr(error), told)
        self._calls.answered(unit, fault)
        self.faults[kind] += 1
        if unit in self._resetting:
            self._retry_at.pop(unit, None)
            self._reset_failed(unit, fault)
        elif self._steps_now(unit):
            self._step_failed(unit, fault)
        elif self._unit_of[i] == unit and self._states[i] == EnvState.RUN:
            self._lost[i] = fault  # Its next step tells.
        elif self._ready_units[unit]:
            self._reset_failed(unit, fault)  # A spare.
