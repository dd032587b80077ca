"""Process executor: many envs at once, in processes that step them while this one works on."""

from __future__ import annotations

import logging
import pickle
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ding.envs.base_env import StepByEnv
from ding.envs.manager.interface import EnvManager, ResetParam
from ding.envs.manager.slot import EnvState, Slot, named_ids
from ding.envs.manager.workers.channel import DONE, Command
from ding.envs.manager.workers.results import Actions, Results, SpaceMisfitError
from ding.envs.manager.workers.shared_block import EnvSpaces, space_specs, worker_block
from ding.envs.manager.workers.supervisor import Supervisor
from ding.envs.manager.workers.watchdog import is_quick
from ding.envs.manager.workers.worker_pool import (
    PoolPlan,
    WorkerPool,
    WorkerProcess,
    envs_per_worker,
)
from ding.utils.batch import ByEnv, rows_of, take

logger = logging.getLogger(__name__)

# Seconds in which the workers may begin their steps before this process takes a core for itself.
_HEAD_START = 1e-3
# Between two looks whether a reset is still worth waiting for.
_LOOK_SECONDS = 0.005


class SubprocessEnvManager(EnvManager):
    """`step` waits for `wait_num` envs; resets go on in the background.

    `send` and `recv` are its halves: `send` may be called by any thread, `recv` by one at a time.
    """

    config: ClassVar[dict[str, Any]] = {
        **EnvManager.config,
        # Observations through memory that the processes share; False pickles them.
        "shared_memory": True,
        # False: where all envs step together, observations are views valid until their next step.
        "copy_on_get": True,
        # How processes are started: 'fork', 'spawn' or 'forkserver'.
        "context": "fork",
        # Envs that must have answered before `step` returns.
        "wait_num": float("inf"),
        # Seconds to wait for further ones after that; None waits no longer.
        "step_wait_timeout": None,
        # Seconds for making an env, for its reset if there is no reset_timeout, for other calls.
        "connect_timeout": 60,
        # Wait for every reset, also a slow one: data do not depend on how long resets take.
        "reset_inplace": False,
        # Envs in one process; 'auto' takes several if an env's steps and resets are quick.
        "envs_per_worker": "auto",
        # A second env for every env id, reset in advance, takes over when an episode ends.
        "spare_envs": False,
    }
    overlaps: ClassVar[bool] = False
    """Whether steps of some envs may be under way while actions for others are computed."""
    steps_elsewhere: ClassVar[bool] = True
    """Whether `step` takes a function to call while the envs step."""

    _fits = True
    """First observations are as the observation space says."""
    _supervisor: Supervisor
    _ready_columns: Any = None
    """Observations of the envs in `self._slots.ready`."""

    def launch(self, reset_param: ResetParam | None = None) -> None:
        """Start the workers and begin the first episodes."""
        self._fits, self._shares = True, bool(self._cfg["shared_memory"])
        if self._shares and space_specs(self.observation_space, 1) is None:
            logger.warning(
                "the observation space %s has no fixed shape and dtype: observations are pickled, "
                "which is slower than shared memory",
                self.observation_space,
            )
        try:
            super().launch(reset_param)
            self._supervisor.is_launching = False
        except SpaceMisfitError as error:
            logger.warning("%s: observations are pickled, which is slower", error)
            self._fits = self._shares = False
            super().launch(reset_param)

    def _start(self) -> None:
        copies = len(self._slots[0].instances)
        space = self.observation_space if self._fits else None
        plan = PoolPlan(
            env_fns=self._env_fn * copies,
            observation_space=space,
            per_worker=self._envs_per_worker(),
            context=self._cfg["context"],
            start=partial(WorkerProcess, context=self._cfg["context"]),
        )
        self._start_pool(plan)

    def _envs_per_worker(self) -> int:
        return envs_per_worker(self._cfg, self._env_fn)

    def _start_pool(self, plan: PoolPlan) -> None:
        count, space = len(plan.env_fns), plan.observation_space
        spaces = EnvSpaces(space, self.action_space, self.reward_space)
        block = worker_block(spaces, count, -(-count // plan.per_worker), shared=self._shares)
        pool = WorkerPool(plan, block)
        # Workers end with the manager or with this process, also when nobody calls close().
        self._finalizer = weakref.finalize(self, pool.shut_down)
        self._finalizer.atexit = False
        self._results = Results(block, space, bool(self._cfg["copy_on_get"]))
        self._actions = Actions(self.action_space, block)
        self._supervisor = Supervisor(
            self._slots, pool, self._results, self._flights, self._failures, self._cfg
        )
        self._supervisor.is_launching = self._fits

    def _stop(self) -> None:
        if "_supervisor" in self.__dict__:
            self._finalizer.detach()
            self._supervisor.pool.shut_down()
            del self._results, self._actions, self._supervisor

    def _reset_slots(self, slots: Sequence[Slot]) -> None:
        self._supervisor.reset(slots)

    def _settle(self) -> None:
        self._supervisor.settle()

    def _settings_changed(self, slots: Sequence[Slot]) -> None:
        self._settle()
        for slot in slots:
            for instance in slot.instances:
                self._supervisor.prepare(instance.number)

    @property
    def gives_views(self) -> bool:
        return not self._cfg["copy_on_get"]

    def step(
        self, actions: Mapping[int, Any], meanwhile: Callable[[], None] | None = None
    ) -> StepByEnv:
        """Step in the envs that `actions` names; steps of others may come instead, if not sync.

        `meanwhile` is called while they step.
        """
        ids = self._send(actions)
        try:
            if meanwhile is not None:
                self._supervisor.pool.wait(_HEAD_START)
                meanwhile()
        finally:
            steps = self._wait_for_steps(ids)
        return steps

    def _wait_for_steps(self, ids: np.ndarray) -> StepByEnv:
        supervisor, in_flight = self._supervisor, self.in_flight
        enough = min(self._cfg["wait_num"], in_flight)
        while len(supervisor.ended) < enough:
            supervisor.pump()
        if len(supervisor.ended) < in_flight:
            self._gather(in_flight)
        with self._slots.lock:
            if in_flight == len(ids) == len(supervisor.ended):
                supervisor.ended.clear()
                return self._hand_out(ids)
            return self._hand_out_ended()

    def _gather(self, in_flight: int) -> None:
        """Wait a little for further steps, and for one that does not end an episode."""
        until = time.monotonic() + (self._cfg["step_wait_timeout"] or 0.0)
        supervisor = self._supervisor
        flags = supervisor.pool.block["flags"]
        while len(supervisor.ended) < in_flight:
            left = until - time.monotonic()
            if left <= 0 and not all(flags[number] & DONE for number in supervisor.ended):
                return
            supervisor.pump(left if left > 0 else None)

    def send(self, actions: Mapping[int, Any]) -> None:
        """Begin a step in these envs."""
        self._send(actions)

    def _send(self, actions: Mapping[int, Any]) -> np.ndarray:
        slots = self._slots
        if slots.is_open and self._supervisor.resetting and self._names_awaited(actions):
            self._wait_until_ready()
        with slots.lock:
            ids, stacked = slots.admit(actions)
            columns = self._actions.checked(stacked, len(ids))
            whole, supervisor = ids is self._all_ids, self._supervisor
            index: Any = slice(None) if whole else rows_of(ids)
            self._flights.record(ids, columns)
            slots.busy[index], slots.waiting[index], slots.ready = True, False, None
            if supervisor.any_fresh:
                supervisor.leave_first_obs(ids, index)
            unsent = self._command_steps(supervisor.playing[index], columns, whole)
        for w, data in unsent:
            supervisor.send_rest(w, data)
        return ids

    def _names_awaited(self, actions: Mapping[int, Any]) -> bool:
        """Whether an env that `actions` names is being reset, and that is worth waiting for."""
        ids = named_ids(actions)
        self._slots.check_known(ids)
        return not self._slots.waiting[ids].all() and self._awaits_reset()

    def _command_steps(
        self, numbers: np.ndarray, columns: Any, whole: bool
    ) -> list[tuple[int, bytes]]:
        supervisor = self._supervisor
        if supervisor.lost:
            (numbers, columns), whole = self._without_lost(numbers, columns), False
        if self._actions.column is None:
            rows = self._actions.rows(columns, len(numbers))
            pairs = zip(numbers.tolist(), rows, strict=True)
            return [supervisor.packed(n, Command.STEP_WITH, pickle.dumps(row)) for n, row in pairs]
        self._actions.put(rows_of(numbers), columns)
        everyone = whole and len(supervisor.instances) == self.env_num
        return supervisor.pool.send_steps(None if everyone else numbers.tolist())

    def _without_lost(self, numbers: np.ndarray, columns: Any) -> tuple[np.ndarray, Any]:
        """Leave out envs that are gone with their process; their steps fail now."""
        lost = self._supervisor.lost
        here = np.flatnonzero([number % self.env_num not in lost for number in numbers.tolist()])
        for number in numbers.tolist():
            fault = lost.pop(number % self.env_num, None)
            if fault is not None:
                self._supervisor.step_failed(number, fault)
        return numbers[here], take(columns, here)

    def recv(self, timeout: float | None = None) -> StepByEnv:
        """Steps that have ended; waits for at least one, for a reset, or for the timeout."""
        self._slots.check_open()
        supervisor = self._supervisor
        under_way = timeout is not None or self._slots.busy.any() or supervisor.resetting
        if not supervisor.ended and under_way:
            supervisor.pump(timeout)
        with self._slots.lock:
            return self._hand_out_ended()

    def _hand_out_ended(self) -> StepByEnv:
        ids = np.array(self._supervisor.ended, dtype=np.int64) % self.env_num
        self._supervisor.ended.clear()
        return self._hand_out(self._all_ids if len(ids) == self.env_num else ids)

    def _hand_out(self, ids: np.ndarray) -> StepByEnv:
        slots, whole = self._slots, ids is self._all_ids
        index: Any = slice(None) if whole else rows_of(ids)
        numbers = self._supervisor.playing[index]
        slots.busy[index] = False
        step = self._results.plain_step(ids, numbers)
        if step is not None and not slots.any_failures:
            slots.waiting[index] = True
            all_that_wait = whole or np.count_nonzero(slots.waiting) == len(ids)
            slots.ready, self._ready_columns = (ids, step.obs) if all_that_wait else (None, None)
            return StepByEnv(ids, step)
        slots.ready = None
        step = self._results.step(ids, numbers)
        for i, done, abnormal in zip(
            ids.tolist(), step.done.tolist(), step.abnormal.tolist(), strict=True
        ):
            self._after_step(slots[i], done=done, abnormal=abnormal)
        slots.any_failures = any(slot.failures for slot in slots)
        return StepByEnv(ids, step)

    def _after_step(self, slot: Slot, *, done: bool, abnormal: bool) -> None:
        if slot.env_id in self._supervisor.failed_steps:
            self._supervisor.failed_steps.discard(slot.env_id)
        else:
            slot.failures = 0
        if not done:
            self._slots.waiting[slot.env_id] = slot.state is EnvState.RUN
        elif self._slots.episode_ended(slot, abnormal=abnormal):
            self._supervisor.next_episode(slot)

    @property
    def in_flight(self) -> int:
        """Envs with a step sent and not received."""
        return int(np.count_nonzero(self._slots.busy))

    @property
    def ready_obs(self) -> ByEnv:
        """Observations of the envs that wait for an action, at least one if any plays at all."""
        ready = self._slots.ready
        if ready is None or not len(ready) or self._supervisor.resetting:
            self._slots.check_open()
            self._wait_until_ready()
        return self.waiting_obs

    @property
    def waiting_obs(self) -> ByEnv:
        """As `ready_obs`, but maybe empty: never waits."""
        slots = self._slots
        with slots.lock:
            if slots.ready is None:
                ids = slots.ready_ids()
                numbers, fresh = self._supervisor.playing[ids], self._supervisor.fresh[ids]
                self._ready_columns = self._results.obs(numbers, fresh)
            return ByEnv(slots.ready_ids(), self._ready_columns)

    @property
    def waiting_num(self) -> int:
        """How many envs `waiting_obs` names."""
        return int(np.count_nonzero(self._slots.waiting))

    @property
    def ready_obs_id(self) -> list[int]:
        self._slots.check_open()
        self._wait_until_ready()
        return np.flatnonzero(self._slots.waiting).tolist()

    def _wait_until_ready(self) -> None:
        slots = self._slots
        while not slots.waiting.any() or self._awaits_reset():
            if not self._supervisor.resetting:
                if slots.busy.any() and not slots.waiting.any():
                    raise RuntimeError(
                        "all envs have a step under way: receive some (recv or step) first"
                    )
                return
            self._supervisor.pump(_LOOK_SECONDS)

    def _awaits_reset(self) -> bool:
        """Whether a reset is under way that is worth waiting for.

        Data of the other envs must not depend on how long quick resets happen to take.
        """
        resetting, in_place = self._supervisor.resetting, self._cfg["reset_inplace"]
        if not resetting or (self.overlaps and not in_place):
            return False
        playing = set(self._supervisor.playing.tolist())
        awaited = [instance for number, instance in resetting.items() if number in playing]
        if in_place:
            return bool(awaited)
        seconds = self._supervisor.pool.block["reset_seconds"]
        return any(is_quick(seconds, it.number, it.reset_began) for it in awaited)

    def _call(self, ids: Sequence[int], name: str, *args: Any) -> list[Any]:
        self._slots.check_open()
        numbers = [self._slots[i].instance.number for i in ids]
        return self._supervisor.call(numbers, name, [args] * len(numbers))

    def _look_up(self, name: str) -> list[tuple[str, Any]]:
        return self._call(range(self.env_num), "look", name)

    def _saved_envs(self) -> list[bytes]:
        numbers = range(len(self._supervisor.instances))
        return self._supervisor.call(numbers, "save", [()] * len(numbers))

    def _executor_state(self) -> dict[str, Any]:
        return {
            "fits": self._fits,
            "shares": self._shares,
            "busy": self._slots.busy.copy(),
            "fresh": self._supervisor.fresh.copy(),
            "ended": list(self._supervisor.ended),
            "results": self._results.saved(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called; with new episodes if the envs could not be saved."""
        self._fits, self._shares = state["fits"], state["shares"]
        super().load_state_dict(state)
        self._supervisor.is_launching = False

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._start()
        slots, supervisor = self._slots, self._supervisor
        slots.busy[:], supervisor.fresh[:] = state["busy"], state["fresh"]
        slots.waiting &= ~slots.busy
        supervisor.any_fresh, supervisor.ended = bool(supervisor.fresh.any()), list(state["ended"])
        numbers = range(len(supervisor.instances))
        for number in numbers:
            supervisor.prepare(number)
        supervisor.call(numbers, "load", [(env,) for env in state["envs"]])
        self._results.restore(state["results"])
        for slot in slots:
            supervisor.allow_reset(slot)


class SyncSubprocessEnvManager(SubprocessEnvManager):
    """`step` returns when all envs that it was given have answered."""


class AsyncSubprocessEnvManager(SubprocessEnvManager):
    """`step` returns when some envs have answered, maybe other ones than it was given."""

    config: ClassVar[dict[str, Any]] = {
        **SubprocessEnvManager.config,
        "wait_num": 2,
        "step_wait_timeout": 0.01,
    }
    overlaps: ClassVar[bool] = True
