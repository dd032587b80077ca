"""Supervisor: resets, answers, calls and faults of the envs that a pool of workers runs.

A slot has one env instance in a worker, or with spare envs two that take turns: one is reset while
the other plays. N is the number of slots.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.manager.columns import NoArrayError
from ding.envs.manager.failures import FailurePolicy
from ding.envs.manager.faults import Fault, Phase
from ding.envs.manager.flight.recorder import FlightRecorder
from ding.envs.manager.slot import EnvState, Instance, Slot, SlotTable
from ding.envs.manager.workers.channel import ANSWER, DONE, Answer, Command, command
from ding.envs.manager.workers.results import Results, SpaceMisfitError
from ding.envs.manager.workers.watchdog import Watchdog
from ding.envs.manager.workers.worker import EnvSetup
from ding.envs.manager.workers.worker_pool import WorkerPool
from ding.utils.errors import EnvError

_STEP_ENDED = int(Answer.STEP)


class Supervisor:
    """Turns answers and deaths of workers into transitions of the slots."""

    def __init__(
        self,
        slots: SlotTable,
        pool: WorkerPool,
        results: Results,
        flights: FlightRecorder,
        failures: FailurePolicy,
        cfg: Mapping[str, Any],
    ) -> None:
        self.slots, self.pool, self.results = slots, pool, results
        self._flights, self._failures, self._cfg = flights, failures, cfg
        self._watchdog = Watchdog(cfg)
        self.instances = slots.instances()
        count = len(slots)
        self.playing = np.array([slot.instance.number for slot in slots])
        """(N,): numbers of the instances that play."""
        self.fresh = np.zeros(count, dtype=bool)
        """(N,): the newest observation is the first one of an episode."""
        self.any_fresh = False
        self.ended: list[int] = []
        """Numbers of instances whose step arrived and was not handed out yet."""
        self.resetting: dict[int, Instance] = {}
        """Instances whose reset is under way, by their number."""
        self.lost: dict[int, Fault] = {}
        """By env id: its process ended between two steps; the next step reports it."""
        self.failed_steps: set[int] = set()
        """Ids of envs whose arrived step is a stand-in for one that failed."""
        self._awaited_replies: set[int] = set()
        self._replies: dict[int, Any] = {}
        self.is_launching = False
        """A first observation that does not fit its space is no fault of the env yet."""

    # Resets: PREPARE tells a worker the settings of the coming resets, RESET begins one. At the
    # end of an episode the worker resets by itself if `may_reset` is set.

    def reset(self, slots: Sequence[Slot]) -> None:
        """Forget the steps of these slots, reset all their instances and wait for them."""
        ids = {slot.env_id for slot in slots}
        self.ended = [number for number in self.ended if number % len(self.slots) not in ids]
        for slot in slots:
            self.slots.busy[slot.env_id] = False
            self.lost.pop(slot.env_id, None)
        for number, (slot, instance) in enumerate(self.instances):
            if slot.env_id in ids:
                self.prepare(number)
                self._begin_reset(slot, instance)
        self.settle()

    def prepare(self, number: int, *, renew: bool = False) -> None:
        slot, instance = self.instances[number]
        seed = slot.seed_of(instance) if instance.seed_is_due else None
        setup = EnvSetup(slot.reset_kwargs, seed, slot.dynamic_seed, slot.replay_path, renew)
        self.send(number, Command.PREPARE, pickle.dumps(setup))

    def _begin_reset(self, slot: Slot, instance: Instance) -> None:
        if slot.instance is instance:
            self.slots.enter(slot, EnvState.RESET)
        instance.is_reset = False
        self._note_reset(instance)
        self.send(instance.number, Command.RESET)

    def _note_reset(self, instance: Instance) -> None:
        if instance.number not in self.resetting:
            instance.reset_began = time.monotonic()
            self.resetting[instance.number] = instance
        instance.retry_at = None

    def settle(self) -> None:
        """Wait until no step and no reset is under way."""
        while True:
            self._note_own_resets()
            if np.count_nonzero(self.slots.busy) == len(self.ended) and not self.resetting:
                return
            self.pump()

    def _note_own_resets(self) -> None:
        """Workers may reset envs whose last step has arrived but was not handed out."""
        block = self.pool.block
        for number in self.ended:
            instance = self.instances[number][1]
            own = block["flags"][number] & DONE and block["may_reset"][number]
            if own and not instance.is_reset and not instance.attempts:
                self._note_reset(instance)

    def _reset_ended(self, number: int) -> None:
        slot, instance = self.instances[number]
        self.resetting.pop(number, None)
        instance.attempts = 0
        self._note_seed(slot, instance)
        instance.is_reset = True
        if slot.instance is instance and slot.state is EnvState.RESET:
            self._begin_episode(slot)

    def _note_seed(self, slot: Slot, instance: Instance) -> None:
        """The env has got the seed that was sent for it."""
        seed = slot.seed_of(instance)
        if instance.seed_is_due and seed is not None and slot.instance is instance:
            self._flights.seeded(slot.env_id, seed, slot.dynamic_seed)
        instance.seed_is_due = False

    def _begin_episode(self, slot: Slot) -> None:
        self.slots.enter(slot, EnvState.RUN)
        self.fresh[slot.env_id] = self.any_fresh = True
        self._note_flight(slot)
        self.allow_reset(slot)

    def _note_flight(self, slot: Slot) -> None:
        seed = int(self.pool.block["episode_seed"][slot.instance.number])
        self._flights.began(slot.env_id, slot.reset_kwargs, seed)

    def allow_reset(self, slot: Slot) -> None:
        """Tell the worker whether to reset the env by itself when the episode is over."""
        more = slot.episodes + 1 < self.slots.episode_num
        self.pool.block["may_reset"][slot.instance.number] = self.slots.auto_reset and more

    def next_episode(self, slot: Slot) -> None:
        """After the end of an episode, for a slot in RESET; a spare env takes over."""
        instance = slot.instance
        if not instance.is_reset and instance.number not in self.resetting:
            if self.pool.block["may_reset"][instance.number]:
                self._note_reset(instance)
            else:
                self._begin_reset(slot, instance)
        slot.playing = (slot.playing + 1) % len(slot.instances)
        self.playing[slot.env_id] = slot.instance.number
        if slot.instance.is_reset:
            self._begin_episode(slot)

    def leave_first_obs(self, ids: np.ndarray, index: Any) -> None:
        """The first actions of episodes are sent to some of these envs."""
        for i in ids[self.fresh[index]].tolist():
            self.slots[i].instance.is_reset = False
        self.fresh[index] = False
        self.any_fresh = bool(self.fresh.any())

    def send(self, number: int, kind: Command, pickled: bytes = b"") -> None:
        self.send_rest(*self.packed(number, kind, pickled))

    def packed(self, number: int, kind: Command, pickled: bytes) -> tuple[int, bytes]:
        """Worker and bytes of a command."""
        return self.pool.worker_of[number], command(kind, number, pickled)

    def send_rest(self, w: int, data: bytes) -> None:
        """Send in parts and read answers between them: full pipes both ways would deadlock."""
        view = memoryview(data)
        while view:
            view = view[self.pool.send_some(w, view) :]
            if view:
                time.sleep(1e-3)  # Not `pump`: another thread may be waiting in it.
                self._take_note()

    def pump(self, timeout: float | None = None) -> None:
        """Wait for news of the workers, for a while at most, and take note of all there are."""
        limit = self._watchdog.patience
        if timeout is not None and timeout < limit:
            limit = timeout
        if self.resetting:
            due = [i.retry_at for i in self.resetting.values() if i.retry_at is not None]
            limit = max(min([limit, *(at - time.monotonic() for at in due)]), 0.0)
        self.pool.wait(limit)
        self._take_note()

    def _take_note(self) -> None:
        with self.slots.lock:
            self._take_answers()
            while self.pool.dead:
                self._replace_worker(min(self.pool.dead))
            now = time.monotonic()
            if self._watchdog.is_due(now):
                self._check_health(now)
            for instance in list(self.resetting.values()) if self.resetting else ():
                if instance.retry_at is not None and instance.retry_at <= now:
                    self._begin_again(*self.instances[instance.number])

    def _take_answers(self) -> None:
        pool = self.pool
        for kind, incarnation, number, count in ANSWER.iter_unpack(pool.answers()):
            if incarnation != pool.workers[pool.worker_of[number]].incarnation:
                continue  # The worker was given up meanwhile.
            if kind == _STEP_ENDED:
                self.ended.extend(range(number, number + count))
            elif kind == Answer.FIRST:
                self._reset_ended(number)
            else:
                self._take_pickle(kind, number)

    def _take_pickle(self, kind: int, number: int) -> None:
        w = self.pool.worker_of[number]
        try:
            sent = self.pool.workers[w].reader.read_pickle(self._watchdog.answer_limit)
        except (EOFError, TimeoutError):
            self.pool.kill(w)  # Its sentinel tells the rest.
            return
        if kind == Answer.STEP_WITH:
            self.results.received_step(number, sent)
            self.ended.append(number)
        elif kind == Answer.FIRST_WITH:
            self.results.received_first(number, sent)
            self._reset_ended(number)
        elif kind == Answer.REPLY:
            self._replied(number, sent)
        elif sent.phase == Phase.STEP:
            self._failures.counts[sent.kind] += 1
            self.step_failed(number, sent)
        else:
            if sent.phase == Phase.RESET:
                self._note_seed(*self.instances[number])
            self._reset_failed(number, sent)

    def call(self, numbers: Sequence[int], name: str, args: Sequence[Any]) -> list[Any]:
        """Results of a method of these instances, with arguments for each."""
        for number, given in zip(numbers, args, strict=True):
            self._awaited_replies.add(number)
            self.send(number, Command.CALL, pickle.dumps((name, given)))
        while self._awaited_replies:
            self.pump()
        replies = [self._replies.pop(number) for number in numbers]
        for number, reply in zip(numbers, replies, strict=True):
            if isinstance(reply, Fault):
                env_id = self.instances[number][0].env_id
                raise EnvError(f"env {env_id}: '{name}' failed: {reply.shown}") from reply.error
        return replies

    def _replied(self, number: int, reply: Any) -> None:
        if number in self._awaited_replies:
            self._awaited_replies.discard(number)
            self._replies[number] = reply

    def step_failed(self, number: int, fault: Fault) -> None:
        """Put an abnormal step in place of the one that failed, and begin a new episode."""
        slot, instance = self.instances[number]
        self.results.put_broken(number, fault.told)
        self.ended.append(number)
        self.failed_steps.add(slot.env_id)
        error = self._failures.step_failed(slot, fault)
        if error is not None:
            self._failures.close()
            raise error
        self._begin_again(slot, instance)

    def _reset_failed(self, number: int, fault: Fault) -> None:
        slot, instance = self.instances[number]
        misfit = fault.kind == "shape" and not isinstance(fault.error, NoArrayError)
        if self.is_launching and misfit:
            raise SpaceMisfitError(fault.told)
        if slot.instance is instance:
            self._note_flight(slot)
        self._note_reset(instance)
        if fault.kind == "lost":
            self._begin_again(slot, instance)
        else:
            self._failures.reset_failed(slot, instance, fault)
            instance.retry_at = time.monotonic() + self._cfg["retry_waiting_time"]

    def _begin_again(self, slot: Slot, instance: Instance) -> None:
        """Reset an env that broke, as a new one if the config says so."""
        if self._cfg["retry_type"] == "renew":
            self._renew(instance.number)
        self._begin_reset(slot, instance)

    def _renew(self, number: int) -> None:
        slot, instance = self.instances[number]
        slot.renewed(instance)
        self.prepare(number, renew=True)

    def _check_health(self, now: float) -> None:
        """Give up on workers that take too long; look for dead ones that nobody told of."""
        self.pool.look_for_dead()
        block = self.pool.block
        overdue = self._watchdog.overdue(block, len(self.slots), now, self._owes_answer)
        for w, why in list(overdue):
            self._replace_worker(w, timeout=why)

    def _owes_answer(self, w: int) -> bool:
        return any(
            number in self._awaited_replies
            or (number in self.resetting and self.resetting[number].retry_at is None)
            or self._steps_now(number)
            for number in self.pool.workers[w].rows
        )

    def _steps_now(self, number: int) -> bool:
        slot, instance = self.instances[number]
        is_playing = slot.instance is instance
        return bool(is_playing and self.slots.busy[slot.env_id] and number not in self.ended)

    def _replace_worker(self, w: int, timeout: str = "") -> None:
        """Start a new worker for one that died or must die; decide what each of its envs does."""
        pool = self.pool
        ending = pool.kill(w)
        self._take_answers()
        self._note_own_resets()
        code = int(pool.block["running"][w])
        numbers = pool.workers[w].rows
        pool.restart(w)
        # Between two calls the death is charged to an env that steps, or to one that is reset.
        culprit = (
            code % len(self.instances)
            if code >= 0
            else min(numbers, key=lambda n: (not self._steps_now(n), n not in self.resetting))
        )
        for number in numbers:
            self._renew(number)
        for number in numbers:
            told = timeout or f"its process {ending}"
            kind = "timeout" if timeout else "died"
            if number != culprit:
                kind, told = "lost", f"the process that it shared ended: {told}"
            self._worker_lost(number, kind, told)

    def _worker_lost(self, number: int, kind: str, told: str) -> None:
        slot, instance = self.instances[number]
        error = TimeoutError(told) if kind == "timeout" else RuntimeError(told)
        fault = Fault(kind, Phase.STEP, repr(error), told, "", error)
        self._replied(number, fault)
        self._failures.counts[kind] += 1
        if number in self.resetting:
            self._reset_failed(number, fault)
        elif self._steps_now(number):
            self.step_failed(number, fault)
        elif slot.instance is instance and slot.state is EnvState.RUN:
            self.lost[slot.env_id] = fault
        elif instance.is_reset:
            self._reset_failed(number, fault)  # A spare env.
