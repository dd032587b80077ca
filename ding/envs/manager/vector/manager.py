"""Vector executor: one vector env in the place of many envs.

An env that is not ready (its reset comes with the next step, it is DONE, or it was left out of a
step at the beginning of an episode) idles along unseen and joins with its next episode. N is the
number of envs, n the number of those in a step.
"""

from __future__ import annotations

import logging
import pickle
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.envs.base_env import StepByEnv, VecStep
from ding.envs.gym_env import DingEnvWrapper
from ding.envs.manager.columns import (
    RowError,
    all_finite,
    as_numbers,
    has_nan,
    leaves,
    nan_message,
    reward_message,
)
from ding.envs.manager.env_access import VALUE, attribute_errors_shown
from ding.envs.manager.faults import Phase, check_deadlines_possible, deadline, fault_of
from ding.envs.manager.flight.file import place_in
from ding.envs.manager.interface import EnvManager, ResetParam
from ding.envs.manager.slot import EnvState, Slot
from ding.envs.manager.vector.columns import fitting_actions
from ding.envs.manager.vector.simulators import Outcome, Seeds, Simulators
from ding.utils.batch import take
from ding.utils.errors import DingError

logger = logging.getLogger(__name__)


class NumbersError(RowError):
    """Some envs gave NaN, or rewards that are not finite."""

    def __init__(self, ids: list[int], told: str) -> None:
        super().__init__(f"envs {ids}: {told}")
        self.ids = ids


class VectorEnvManager(EnvManager):
    """Steps all envs together; subclasses make the vector env."""

    _made: Simulators | None = None

    def __init__(
        self, env_fn: Sequence[Callable[[], Any]], cfg: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(env_fn, cfg)
        # Of these only configs and seeds are used: each draws what it would draw if it were alone.
        self._wrappers: list[DingEnvWrapper] = [fn() for fn in env_fn]
        self._check_wrappers(self._wrappers)
        self._rew_clip = bool(self._wrappers[0]._cfg.get("rew_clip"))

    @abstractmethod
    def _make_simulators(self) -> Simulators: ...

    @abstractmethod
    def _check_wrappers(self, wrappers: Sequence[Any]) -> None:
        """Raise for what the envs' configs ask for and a vector env cannot do."""

    @property
    def _simulators(self) -> Simulators:
        if self._made is None:
            with attribute_errors_shown("making the vector env"):
                self._made = self._make_simulators()
            self._action_spaces = [deepcopy(self._made.action_space) for _ in self._wrappers]
        return self._made

    def _start(self) -> None:
        if self._cfg["step_timeout"] is not None or self._cfg["reset_timeout"] is not None:
            check_deadlines_possible()
        assert self._simulators
        self._returns = np.zeros(self.env_num)
        # An env is in the middle of an episode if it began before the last tick.
        self._ticks, self._begun = 0, np.zeros(self.env_num, dtype=np.int64)
        self._recent_actions: deque[Any] = deque(maxlen=8)

    def close(self) -> None:
        super().close()
        self._stop()  # A look at the spaces made the vector env before the launch.

    def _stop(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            made.close()

    def _check_params(self, reset_param: ResetParam) -> None:
        super()._check_params(reset_param)
        for i, param in reset_param.items():
            if param:
                raise self._unable(f"pass reset arguments to single envs ({i}: {dict(param)})")

    def _reset_slots(self, slots: Sequence[Slot]) -> None:
        """Begin episodes; if single envs cannot be reset, those under way end unseen first."""
        ids = [slot.env_id for slot in slots]
        if len(ids) < self.env_num and self._simulators.resets_alone:
            try:
                self._obs = self._reset_some(ids, ids)
            except Exception as error:  # A vector env may raise anything.
                self.faults["reset"] += 1
                self._simulators.failed = True
                fault = fault_of(error, Phase.RESET)
                told = f"reset of envs {ids} failed: {fault.shown}{place_in(fault.traceback)}"
                raise fault.failure(told) from error
            self._join(ids)
        self._begin_if_idle()

    def _begin_if_idle(self) -> None:
        """If an env waits for its reset and no episode is on the way, begin in all at once."""
        slots = self._slots
        if slots.n_reset and not (slots.waiting & (self._begun < self._ticks)).any():
            self._begin()

    def _begin(self, *, broken: bool = False) -> None:
        """Reset the vector env, which may have failed before, in as many attempts as allowed."""
        slot = self._slots[0]  # It stands for all: they fail together.
        instance = slot.instance
        instance.attempts = 0
        while True:
            try:
                if instance.attempts:
                    time.sleep(self._cfg["retry_waiting_time"])
                if broken:
                    self._renew()
                self._obs = self._reset_all()
            except Exception as error:  # A vector env may raise anything.
                self._simulators.failed = True
                fault = fault_of(error, Phase.RESET)
                self._failures.reset_failed(slot, instance, fault, "the vector env's")
                broken = True
                continue
            instance.attempts = 0
            return self._join(self._all_ids.tolist())

    def _reset_all(self) -> Any:
        reseed = any(slot.instance.seed_is_due for slot in self._slots)
        seeds = self._next_seeds(self._all_ids.tolist())
        with self._deadline("reset"):
            table = self._simulators.reset(seeds, reseed)
        if has_nan(table):
            raise RowError(nan_message("obs"))
        return table

    def _reset_some(self, ids: list[int], seeded: list[int]) -> Any:
        """The table after a reset of these envs, some of which only idle and need no seed."""
        by_env = dict(zip(seeded, self._next_seeds(seeded), strict=True))
        with self._deadline("reset"):
            table = self._simulators.reset_some(ids, [by_env.get(i) for i in ids])
        if has_nan(take(table, ids)):
            raise NumbersError(ids, nan_message("obs"))
        return table

    def _next_seeds(self, ids: list[int]) -> Seeds:
        """Seeds of the coming episodes; None where none was ever set."""
        for i in ids:
            slot, env = self._slots[i], self._wrappers[i]
            if slot.instance.seed_is_due:
                seed, dynamic = slot.seed_of(slot.instance), slot.dynamic_seed
                assert seed is not None
                env.seed(seed) if dynamic is None else env.seed(seed, dynamic)
                self._action_spaces[i].seed(seed)
                slot.instance.seed_is_due = False
        return [self._wrappers[i]._next_seed() for i in ids]

    def _renew(self) -> None:
        if self._cfg["retry_type"] == "renew" or self._simulators.has_processes:
            self._simulators.renew()
            for slot in self._slots:
                slot.renewed(slot.instance)

    def _join(self, ids: Iterable[int]) -> None:
        """These envs are at the first step of an episode."""
        for i in ids:
            self._returns[i], self._begun[i] = 0.0, self._ticks
            slot = self._slots[i]
            if slot.state is EnvState.RESET:
                self._slots.enter(slot, EnvState.RUN)

    def _deadline(self, what: str) -> AbstractContextManager[None]:
        seconds = self._cfg[f"{what}_timeout"]
        return nullcontext() if seconds is None else deadline(seconds, f"{what} of the vector env")

    def step(self, actions: Mapping[int, Any]) -> StepByEnv:
        """One step in every env that `actions` names: all that are ready."""
        slots, simulators = self._slots, self._simulators
        ids, stacked = slots.admit(actions)
        columns = fitting_actions(simulators.action_space, stacked, len(ids))
        if ids is not self._all_ids and not simulators.holds:
            self._leave_out(set(np.flatnonzero(slots.waiting).tolist()).difference(ids.tolist()))
        self._recent_actions.append(columns)
        try:
            out = self._outcome(ids, columns)
        except Exception as error:  # A vector env may raise anything.
            return StepByEnv(ids, self._broken_step(ids, error))
        if slots.any_failures:
            self._set_failures([])
        self._returns[slice(None) if ids is self._all_ids else ids] += out.reward
        self._ticks += 1
        self._obs = out.table
        reward = out.reward.astype(np.float32)
        reward = reward.clip(-1.0, 1.0) if self._rew_clip else reward
        abnormal = out.info.flags("abnormal")
        step = VecStep(out.obs, reward, out.done, out.info, out.truncated, abnormal, ids)
        if True in out.done.tolist():
            self._end_episodes(step)
        self._join(out.fresh)
        if slots.n_reset:
            self._begin_if_idle()
        return StepByEnv(ids, step)

    def _leave_out(self, ids: set[int]) -> None:
        """Let envs idle until their next episode begins, if this one has not begun."""
        begun = sorted(i for i in ids if self._begun[i] < self._ticks)
        if begun:
            raise ValueError(
                f"step() leaves out envs {begun} in the middle of their episodes, but "
                f"{self._simulators.vector!r} steps all its envs together: give actions for all "
                "of ready_obs, or use env.manager.type='base'"
            )
        for i in ids:
            self._slots.enter(self._slots[i], EnvState.RESET)

    def _outcome(self, ids: np.ndarray, columns: Any) -> Outcome:
        """The checked outcome of actions, after the resets that the vector env leaves to us."""
        simulators, asked = self._simulators, None if ids is self._all_ids else ids
        if self._cfg["step_timeout"] is None:
            out = simulators.step(asked, columns)
        else:
            with self._deadline("step"):
                out = simulators.step(asked, columns)
        if out.reward.ndim > 1:
            out = out._replace(reward=as_numbers(out.reward))
            if (
                out.reward.shape[1:] != self._returns.shape[1:]
            ):  # The first rewards say their shape.
                self._returns = np.zeros((self.env_num, *out.reward.shape[1:]))
        if out.reward.shape[:1] != ids.shape:
            raise RowError(f"rewards of {len(ids)} envs have the shape {out.reward.shape}")
        if has_nan(out.obs):
            raise NumbersError(_rows_with_nan(out.obs, ids), nan_message("obs"))
        if not all_finite(out.reward):
            finite = np.isfinite(out.reward).reshape(len(ids), -1).all(axis=1)
            raise NumbersError(ids[~finite].tolist(), reward_message(out.reward))
        return self._reset_over(out, ids) if out.over else out

    def _reset_over(self, out: Outcome, ids: np.ndarray) -> Outcome:
        """Reset the envs whose episode is over, for simulators that do not do it themselves."""
        abnormal = out.info.flags("abnormal")[out.done].tolist()
        ended = dict(zip(ids[out.done].tolist(), abnormal, strict=True))
        goes_on = [
            i
            for i in out.over
            if self._slots.goes_on(self._slots[i], ended.get(i, False))
            and (i in ended or self._slots[i].state is EnvState.RESET)
        ]
        # If envs can stand still, one that nobody steps needs no reset.
        chosen = goes_on if self._simulators.holds else list(out.over)
        if not chosen:
            return out
        return out._replace(table=self._reset_some(chosen, goes_on), fresh=chosen)

    def _end_episodes(self, step: VecStep) -> None:
        for k in np.flatnonzero(step.done).tolist():
            i, info = int(step.env_id[k]), step.info[k]
            total = self._returns[i]
            info.setdefault("eval_episode_return", total.copy() if total.ndim else float(total))
            if step.truncated[k]:
                info["truncated"] = True
            self._slots.episode_ended(self._slots[i], abnormal=bool(step.abnormal[k]))

    def _broken_step(self, ids: np.ndarray, error: Exception) -> VecStep:
        """Drop the episodes of all envs: nobody knows what state the others are in."""
        slots, fault = self._slots, fault_of(error, Phase.STEP)
        self._simulators.failed = True
        culprits = error.ids if isinstance(error, NumbersError) else None
        charged = 1 if culprits is None else len(culprits)
        self.faults[fault.kind] += charged
        self.faults["lost"] += max(len(ids) - charged, 0)
        self._set_failures(self._all_ids.tolist() if culprits is None else culprits)
        seeds = [slots[i].seed for i in ids.tolist()]
        actions = [a.tolist() if isinstance(a, np.ndarray) else a for a in self._recent_actions]
        told = f"vector env step failed: {fault.shown} (seeds {seeds}, last actions {actions})"
        if max(slot.failures for slot in slots) >= self._failures.max_retry:
            for i in ids.tolist():
                slots.enter(slots[i], EnvState.ERROR)
            raise fault.failure(told + place_in(fault.traceback))
        logger.warning("%s; the episodes of all its envs are dropped", told)
        step = self._stand_in(ids, fault.told)
        for i in ids.tolist():
            slots.enter(slots[i], EnvState.RESET)
        self._begin(broken=True)
        return step

    def _set_failures(self, ids: Sequence[int]) -> None:
        """One more failed step in a row for these envs, none for the others."""
        for slot in self._slots:
            slot.failures = slot.failures + 1 if slot.env_id in ids else 0
        self._slots.any_failures = bool(ids)

    def _stand_in(self, ids: np.ndarray, error: str) -> VecStep:
        """An abnormal step in place of the one that failed."""
        infos = [{"abnormal": True, "error": error} for _ in ids]
        no, reward = np.zeros(len(ids), dtype=bool), np.zeros_like(self._returns[ids], np.float32)
        return VecStep(take(self._obs, ids), reward, no, infos, no.copy(), ~no, ids)

    @property
    def env_ref(self) -> Any:
        return self._wrappers[0]

    @property
    def notes(self) -> tuple[str, ...]:
        return self._simulators.notes

    @property
    def observation_space(self) -> Any:
        return self._simulators.observation_space

    @property
    def action_space(self) -> Any:
        return self._simulators.action_space

    @property
    def reward_space(self) -> Any:
        return spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32)

    @property
    def ready_imgs(self) -> dict[int, Any]:
        self._slots.check_open()
        with attribute_errors_shown("'render' of the vector env"):
            frames = self._simulators.vector.render()
        if frames is None:
            raise DingError("cannot render: set env.env_kwargs=dict(render_mode='rgb_array')")
        return {i: frames[i] for i in self.ready_obs_id}

    def random_action(self) -> dict[int, Any]:
        self._slots.check_open()
        return {i: self._action_spaces[i].sample() for i in self.ready_obs_id}

    def enable_save_replay(self, replay_path: str | Sequence[str]) -> None:
        raise self._unable("save replays")

    def _call(self, ids: Sequence[int], name: str, *args: Any) -> list[Any]:
        raise self._unable(f"call '{name}' of single envs")

    def _unable(self, what: str) -> DingError:
        return DingError(
            f"{type(self).__name__} cannot {what}: its envs are parts of one vector env; "
            "use env.manager.type='base' or 'subprocess'"
        )

    def _look_up(self, name: str) -> list[tuple[str, Any]]:
        vector = self._simulators.vector
        if not hasattr(vector, "get_attr"):
            raise AttributeError(f"{type(self).__name__} has no '{name}', nor envs to ask for it")
        return [(VALUE, value) for value in vector.get_attr(name)]

    def _saved_envs(self) -> list[bytes]:
        return [pickle.dumps((self._simulators, self._wrappers, self._action_spaces))]

    def _executor_state(self) -> dict[str, Any]:
        counts = {"ticks": self._ticks, "begun": self._begun.copy()}
        return {"obs": self._obs, "returns": self._returns.copy(), **counts}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._made, self._wrappers, self._action_spaces = pickle.loads(state["envs"][0])
        self._start()
        self._obs, self._returns = state["obs"], state["returns"].copy()
        self._ticks, self._begun = state["ticks"], state["begun"].copy()


def _rows_with_nan(columns: Any, ids: np.ndarray) -> list[int]:
    """Ids of the envs with NaN in their observation or reward."""
    broken = np.zeros(len(ids), dtype=bool)
    for _, leaf in leaves(columns, ""):
        if leaf.dtype.kind == "f":
            broken |= np.isnan(leaf).reshape(len(ids), -1).any(axis=1)
    return ids[broken].tolist()
