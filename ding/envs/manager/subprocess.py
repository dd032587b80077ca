"""Many envs at once, in processes that step them while this process does other work."""

from __future__ import annotations

import logging
import pickle
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

import numpy as np

from ding.envs.base_env import StepByEnv
from ding.envs.manager.old_interface import EnvManager, EnvState, ResetParam
from ding.envs.manager.workers.channel import DONE, Command
from ding.envs.manager.workers.crew import Crew, Member, Plan
from ding.envs.manager.workers.crewed import CrewedEnvManager
from ding.envs.manager.workers.probe import envs_per_worker
from ding.envs.manager.workers.quick import is_quick
from ding.envs.manager.workers.remote import RemoteEnv, seen
from ding.envs.manager.workers.results import Actions, Results, SpaceMisfitError
from ding.envs.manager.workers.resume import resume, state_of
from ding.envs.manager.workers.shared import space_specs
from ding.envs.manager.workers.watchdog import Watchdog
from ding.utils.batch import ByEnv, rows_of, stacked_of, take

logger = logging.getLogger(__name__)

# Seconds in which the workers may begin their steps before this process takes a core for itself.
_HEAD_START = 1e-3
# Between two looks whether a reset is still worth waiting for.
_GLANCE = 0.005


class SubprocessEnvManager(CrewedEnvManager):
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
    in_threads: ClassVar[bool] = False
    steps_elsewhere: ClassVar[bool] = True
    """Whether `step` takes a function to call while the envs step."""

    def launch(self, reset_param: ResetParam | None = None) -> None:
        """Start the workers and begin the first episodes."""
        self._check_closed()
        self._check_known(reset_param or {})
        shared = bool(self._cfg["shared_memory"])
        if shared and space_specs(self.observation_space, 1) is None:
            logger.warning(
                "the observation space %s has no fixed shape and dtype: observations are pickled, "
                "which is slower than shared memory",
                self.observation_space,
            )
        self._fits = True
        try:
            self._launch(reset_param, shared)
        except SpaceMisfitError as error:
            logger.warning("%s: observations are pickled, which is slower", error)
            self._fits = False
            self._launch(reset_param, shared=False)

    def _launch(self, reset_param: ResetParam | None, shared: bool) -> None:
        self._start(shared)
        with ExitStack() as undo:
            undo.callback(self.close)
            self._unsent = set(self._seeded_units())
            self._remember(reset_param or {})
            self._launching = self._fits
            self.reset()
            self._launching = False
            undo.pop_all()

    def _start(self, shared: bool) -> None:
        cfg = self._cfg
        space = self.observation_space if self._fits else None
        plan = Plan(
            env_fns=[fn for _ in range(len(self._renewals) // self.env_num) for fn in self._env_fn],
            observation_space=space,
            action_space=self.action_space,
            reward_space=self.reward_space,
            shared=shared,
            per_worker=envs_per_worker(cfg, self._env_fn, self.in_threads),
            context=cfg["context"],
            in_threads=self.in_threads,
        )
        self._crew = crew = Crew(plan)
        # Also when nobody calls close(): workers end with the manager or with this process.
        self._finalizer = weakref.finalize(self, crew.shut_down)
        self._finalizer.atexit = False
        self._watchdog = Watchdog(cfg)
        self._results = Results(crew.block, space, bool(cfg["copy_on_get"]))
        self._actions = Actions(self.action_space, crew.block)
        weak = weakref.proxy(self)
        self._envs = [RemoteEnv(weak, i) for i in range(self.env_num)]
        self._states = [EnvState.INIT] * self.env_num

    @property
    def gives_views(self) -> bool:
        return not self._cfg["copy_on_get"]

    @property
    def closed(self) -> bool:
        return self._crew is None

    def close(self) -> None:
        if self._crew is None:
            return
        self._finalizer.detach()
        self._crew.shut_down()
        del self._results, self._actions
        self._clear()

    def step(
        self, actions: Mapping[int, Any], meanwhile: Callable[[], None] | None = None
    ) -> StepByEnv:
        """Step in the envs that `actions` names; steps of others may come instead, if not sync.

        `meanwhile` is called while they step.
        """
        ids = self._send(actions)
        try:
            if meanwhile is not None:
                self._live.wait(_HEAD_START)
                meanwhile()
        finally:
            steps = self._wait_for_steps(ids)
        return steps

    def _wait_for_steps(self, ids: np.ndarray) -> StepByEnv:
        in_flight = self.in_flight
        enough = min(self._cfg["wait_num"], in_flight)
        while len(self._ended) < enough:
            self._pump()
        if len(self._ended) < in_flight:
            self._gather(in_flight)
        with self._lock:
            if in_flight == len(ids) == len(self._ended):
                self._ended.clear()
                return self._hand_out(ids)
            return self._hand_out_ended()

    def _gather(self, in_flight: int) -> None:
        """Wait a little for further steps, and for one that does not end an episode."""
        until = time.monotonic() + (self._cfg["step_wait_timeout"] or 0.0)
        flags = self._live.block["flags"]
        while len(self._ended) < in_flight:
            left = until - time.monotonic()
            if left <= 0 and not all(flags[unit] & DONE for unit in self._ended):
                return
            self._pump(left if left > 0 else None)

    def send(self, actions: Mapping[int, Any]) -> None:
        """Begin a step in these envs."""
        self._send(actions)

    def _send(self, actions: Mapping[int, Any]) -> np.ndarray:
        with self._lock:
            ids, columns = self._admit(actions)
            whole = ids is self._all_ids
            index: Any = slice(None) if whole else rows_of(ids)
            self._flights.record(ids, columns)
            self._busy[index], self._waiting[index], self._cached = True, False, None
            units = self._unit_of[index]
            if self._has_fresh:
                self._ready_units[units] = False
                self._fresh[index] = False
                self._has_fresh = bool(self._fresh.any())
            unsent = self._command_steps(units, columns, whole)
        for member, data in unsent:
            self._send_rest(member, data)
        return ids

    def _admit(self, actions: Mapping[int, Any]) -> tuple[np.ndarray, Any]:
        """Ids and checked actions of a step that is allowed; nothing has changed if it is not."""
        if not actions:
            raise ValueError("step() got no actions")
        self._check_open()
        stacked_already = isinstance(actions, ByEnv) and actions.is_stacked
        cached = self._cached
        if cached is None or not stacked_already or actions.ids is not cached.ids:  # type: ignore[attr-defined]
            self._check_waiting(actions.ids.tolist() if stacked_already else list(actions))  # type: ignore[attr-defined]
        ids, stacked = stacked_of(actions)
        everyone = self._all_ids
        if ids is not everyone and len(ids) == len(everyone) and ids.tolist() == everyone.tolist():
            ids = everyone
        return ids, self._actions.checked(stacked, len(ids))

    def _check_waiting(self, ids: list[Any]) -> None:
        known = len(ids) == 1 and type(ids[0]) is int and 0 <= ids[0] < self.env_num
        if known and self._waiting.item(ids[0]):
            return
        self._check_known(ids)
        if len(set(ids)) < len(ids):
            raise ValueError(f"step() got several actions for one env: {ids}")
        if not self._waiting[ids].all() and self._awaits_reset():
            self._wait_until_ready()
        for i in ids:
            if not self._waiting[i]:
                state = "it steps already" if self._busy[i] else f"it is {self._states[i].name}"
                raise RuntimeError(
                    f"env {i} cannot step: {state}, not RUN (ready are {self._waiting_ids()})"
                )

    def _command_steps(
        self, units: np.ndarray, columns: Any, whole: bool
    ) -> list[tuple[Member, bytes]]:
        crew = self._live
        if self._lost:
            (units, columns), whole = self._without_lost(units, columns), False
        if self._actions.column is None:
            rows = self._actions.rows(columns, len(units))
            pairs = zip(units.tolist(), rows, strict=True)
            return [crew.command(u, Command.STEP_WITH, pickle.dumps(row)) for u, row in pairs]
        self._actions.put(rows_of(units), columns)
        if whole and len(self._renewals) == self.env_num:
            return crew.command_all_steps()
        return crew.command_steps(units.tolist())

    def recv(self, timeout: float | None = None) -> StepByEnv:
        """Steps that have ended; waits for at least one, for a reset, or for the timeout."""
        if not self._ended and (timeout is not None or self._busy.any() or self._resetting):
            self._pump(timeout)
        with self._lock:
            return self._hand_out_ended()

    def _hand_out_ended(self) -> StepByEnv:
        count = len(self._ended)
        if count == self.env_num:
            ids = self._all_ids
        elif count == 1:
            ids = self._single_ids[self._ended[0] % self.env_num]
        else:
            ids = np.array(self._ended, dtype=np.int64) % self.env_num
        self._ended.clear()
        return self._hand_out(ids)

    def _hand_out(self, ids: np.ndarray) -> StepByEnv:
        whole = ids is self._all_ids
        index: Any = slice(None) if whole else rows_of(ids)
        units = self._unit_of[index]
        self._busy[index] = False
        step = self._results.plain_step(ids, units)
        if step is not None and not self._failures:
            self._waiting[index] = True
            all_that_wait = whole or np.count_nonzero(self._waiting) == len(ids)
            self._cached = ByEnv(ids, step.obs) if all_that_wait else None
            return StepByEnv(ids, step)
        self._cached = None
        step = self._results.step(ids, units)
        for i, done, abnormal in zip(
            ids.tolist(), step.done.tolist(), step.abnormal.tolist(), strict=True
        ):
            self._after_step(i, done=done, abnormal=abnormal)
        return StepByEnv(ids, step)

    def _after_step(self, i: int, *, done: bool, abnormal: bool) -> None:
        if i in self._failed:
            self._failed.discard(i)
        else:
            self._failures.pop(i, None)
        if not done:
            self._waiting[i] = self._states[i] == EnvState.RUN
            return
        self._episodes[i] += not abnormal
        if self._episodes[i] >= self._cfg["episode_num"]:
            self._states[i] = EnvState.DONE
        elif self._cfg["auto_reset"]:
            self._next_episode(i)
        else:
            self._states[i] = EnvState.NEED_RESET

    def _next_episode(self, i: int) -> None:
        """The worker resets the env already; if there is a spare one it takes over."""
        unit = int(self._unit_of[i])
        self._states[i] = EnvState.RESET
        if not self._ready_units[unit] and unit not in self._resetting:
            if self._live.block["may_reset"][unit]:
                self._resetting[unit] = time.monotonic()
            else:
                self._begin_reset(unit)
        self._unit_of[i] = (unit + self.env_num) % len(self._renewals)
        if self._ready_units[self._unit_of[i]]:
            self._enter(i)

    def _without_lost(self, units: np.ndarray, columns: Any) -> tuple[np.ndarray, Any]:
        """The units that can step; the others, gone with their process, tell so now."""
        here = [int(u) % self.env_num not in self._lost for u in units]
        for unit in units.tolist():
            fault = self._lost.pop(unit % self.env_num, None)
            if fault is not None:
                self._step_failed(unit, fault)
        chosen = np.flatnonzero(here)
        return units[chosen], take(columns, chosen)

    @property
    def ready_obs(self) -> ByEnv:
        """Observations of the envs that wait for an action, at least one if any plays at all."""
        self._check_open()
        if not self._cached or self._awaits_reset():
            self._wait_until_ready()
        return self.waiting_obs

    @property
    def waiting_obs(self) -> ByEnv:
        """As `ready_obs`, but maybe empty: never waits."""
        with self._lock:
            if self._cached is None:
                ids = np.flatnonzero(self._waiting)
                if len(ids) == self.env_num:
                    ids = self._all_ids
                obs = self._results.obs(self._unit_of[ids], self._fresh[ids])
                self._cached = ByEnv(ids, obs)
            return ByEnv(self._cached.ids, self._cached.stacked)  # Whoever gets it may change it.

    @property
    def waiting_num(self) -> int:
        """How many envs `waiting_obs` names."""
        return int(np.count_nonzero(self._waiting))

    @property
    def ready_obs_id(self) -> list[int]:
        self._check_open()
        self._wait_until_ready()
        return self._waiting_ids()

    def _wait_until_ready(self) -> None:
        while not self._waiting.any() or self._awaits_reset():
            if not self._resetting:
                if self._busy.any() and not self._waiting.any():
                    raise RuntimeError(
                        "all envs have a step under way: receive some (recv or step) first"
                    )
                return
            self._pump(_GLANCE)

    def _awaits_reset(self) -> bool:
        """Whether a reset is under way that is worth waiting for.

        What others get must not depend on how long quick resets happen to take.
        """
        if not self._resetting or (self.overlaps and not self._cfg["reset_inplace"]):
            return False
        awaited = [u for u in self._resetting if self._unit_of[u % self.env_num] == u]
        if self._cfg["reset_inplace"]:
            return bool(awaited)
        seconds = self._live.block["reset_seconds"]
        return any(is_quick(seconds, unit, self._resetting[unit]) for unit in awaited)

    def _call(self, ids: Sequence[int], name: str, *args: Any) -> list[Any]:
        return self._call_units([int(self._unit_of[i]) for i in ids], name, [args] * len(ids))

    def _call_units(self, units: Sequence[int], name: str, args: Sequence[Any]) -> list[Any]:
        self._check_open()
        return self._calls.call(self, units, name, args)

    def random_action(self) -> dict[int, Any]:
        """An action for every env that waits for one, drawn by the env's own seeded generator."""
        ids = self.ready_obs_id
        return dict(zip(ids, self._call(ids, "random_action"), strict=True))

    def __getattr__(self, name: str) -> list[Any]:
        """What only the envs have, as a list over them."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        assert not self.closed, f"the env manager is closed, its envs have no '{name}' now"
        values = seen(name, self._call(range(self.env_num), "look", name), self.method_name_list)
        return [getattr(env, name) for env in self._envs] if values is None else values

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        """Save the episodes that begin from now on, in one directory or in one per env."""
        super().enable_save_replay(replay_path)
        if not self.closed:
            self._settle()
            for unit in range(len(self._renewals)):
                self._prepare(unit)

    def state_dict(self) -> dict[str, Any]:
        """All that a bit-exact continuation needs; 'envs' is None if an env cannot be pickled."""
        return state_of(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called; with new episodes if the envs could not be saved."""
        resume(self, state)


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
