"""Many envs, one after the other, in this process.

Public calls speak rows (`{env_id: ...}`); inside, and in their `.stacked`, they are columns.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np

from ding.envs.base_env import BaseEnvTimestep, StepByEnv, VecStep, is_truncated, not_a_timestep
from ding.envs.manager.columns import (
    ActionRows,
    ObsColumns,
    RowError,
    has_nan,
    nan_message,
    obs_columns,
    reward_column,
    stack_checked,
)
from ding.envs.manager.deadline import check_deadlines_possible, deadline, env_error
from ding.envs.manager.flight.file import fault_kind
from ding.envs.manager.interface import UNPICKLABLE, EnvManager, EnvState, ResetParam, seed_after
from ding.utils.batch import ByEnv, stacked_of, take

logger = logging.getLogger(__name__)

_SAVED = (
    *("obs", "states", "episodes", "renewals", "reset_params"),
    *("failures", "seeds", "dynamic", "unsent"),
)


class BaseEnvManager(EnvManager):
    """`launch`, then `ready_obs` and `step` in turn until `done`, then `close`."""

    def launch(self, reset_param: ResetParam | None = None) -> None:
        """Make the envs and begin their first episodes."""
        self._check_closed()
        self._check_known(reset_param or {})
        self._make_envs()
        self._unsent = set(self._seeded())
        self._remember(reset_param or {})
        self.reset()

    def _make_envs(self) -> None:
        self._check_thread()
        # An env that was made only for a look at its spaces becomes the first one.
        first = self._env_ref if self._ref_is_unused else self._env_fn[0]()
        self._env_ref, self._ref_is_unused = first, False
        self._envs = [first]
        with ExitStack() as undo:
            undo.callback(self.close)
            for fn in self._env_fn[1:]:
                self._envs.append(fn())
            for i, path in enumerate(self._replay_paths):
                if path is not None:
                    self._envs[i].enable_save_replay(path)
            undo.pop_all()
        self._states = [EnvState.INIT] * self.env_num

    def _check_thread(self) -> None:
        if self._cfg["step_timeout"] is not None or self._cfg["reset_timeout"] is not None:
            check_deadlines_possible()

    @property
    def _obs_columns(self) -> ObsColumns:
        if (
            self._columns is None
        ):  # Not before the first reset: some envs know their spaces only then.
            self._columns = obs_columns(self.observation_space)
        return self._columns

    @property
    def _action_rows(self) -> ActionRows:
        if self._splitter is None:
            python_actions = all(getattr(env, "python_actions", False) for env in self._envs)
            self._splitter = ActionRows(self.action_space, python_actions)
        return self._splitter

    def close(self) -> None:
        if self.closed:
            return
        with ExitStack() as stack:  # Closes all, also when one of them fails to.
            for env in self._envs:
                stack.callback(env.close)
            self._clear()

    def _send_seed(self, i: int) -> None:
        seed = self._seeds[i]
        assert seed is not None
        if self._renewals[i]:
            seed = seed_after(seed, self._renewals[i])
        env, dynamic = self._envs[i], self._dynamic[i]
        self._flights.seeded(i, seed, dynamic)
        env.seed(seed) if dynamic is None else env.seed(seed, dynamic)
        if hasattr(env.action_space, "seed"):
            env.action_space.seed(seed)

    def reset(self, reset_param: ResetParam | None = None) -> None:
        """Begin new episodes in all envs, or in the given ones; arguments are kept for later."""
        self._check_open()
        ids = list(range(self.env_num) if reset_param is None else reset_param)
        self._check_known(ids)
        self._remember(reset_param or {})
        if reset_param is None:
            self._repeat_static_seeds()
        for i in ids:
            if reset_param is None or self._states[i] == EnvState.DONE:
                self._episodes[i] = 0
        if ids:
            self._reset_envs(ids)
            self._note_states()

    def _reset_envs(self, ids: list[int]) -> None:
        """Reset these envs; their first observations become ready."""
        columns = [self._reset_env(i) for i in ids]
        first = self._obs_columns.joined(columns)
        whole = self._obs is None or ids == self._all_ids.tolist()
        self._obs = first if whole else self._obs_columns.replaced(self._obs, ids, first)

    def _reset_env(self, i: int) -> Any:
        """Column of the first observation, after as many attempts as the config allows."""
        self._states[i] = EnvState.RESET
        for attempt in range(self._max_retry):
            try:
                if attempt:
                    time.sleep(self._cfg["retry_waiting_time"])
                    self._renew(i)
                obs = self._reset_once(i)
            except Exception as error:  # An env may raise anything.
                latest = error
                self.faults["reset"] += 1
                if attempt + 1 < self._max_retry:
                    logger.warning("Trying again: %s", self._flights.report(i, error))
                continue
            self._states[i] = EnvState.RUN
            return obs
        self._states[i] = EnvState.ERROR
        headline = (
            f"Env {i} reset has exceeded max retries({self._max_retry}), "
            f"and the latest exception is: {latest!r}"
        )
        failure = env_error(self._flights.report(i, latest, headline), latest)
        self.close()
        raise failure from latest

    def _reset_once(self, i: int) -> Any:
        if i in self._unsent:
            self._send_seed(i)
            self._unsent.discard(i)
        env, params = self._envs[i], self._reset_params[i]
        self._flights.began(i, params)
        try:
            if self._reset_timeout is None:
                obs = env.reset(**params)
            else:
                with self._deadline("reset", i):
                    obs = env.reset(**params)
        finally:
            self._flights.told(i, getattr(env, "episode_seed", None))
        return stack_checked(self._obs_columns, [obs])

    def _renew(self, i: int) -> None:
        if self._cfg["retry_type"] == "reset":
            return
        self._envs[i].close()
        self._envs[i] = self._env_fn[i]()
        self._renewals[i] += 1
        if self._seeds[i] is not None:
            self._unsent.add(i)
        path = self._replay_paths[i]
        if path is not None:
            self._envs[i].enable_save_replay(path)

    def _deadline(self, what: str, i: int) -> AbstractContextManager[None]:
        seconds = self._cfg[f"{what}_timeout"]
        return nullcontext() if seconds is None else deadline(seconds, f"{what} of env {i}")

    def step(self, actions: Mapping[int, Any]) -> StepByEnv:
        """One step in every env that `actions` names; where an episode ends the next one begins."""
        ids, rows = self._admit(actions)
        step = self._vec_step(ids, self._step_envs(ids.tolist(), rows))
        if ids is self._all_ids:
            self._obs = step.obs
        else:
            self._obs = self._obs_columns.replaced(self._obs, ids, step.obs)
        if True in step.done.tolist():
            self._after_done(step)
        if self._broken or self._failures:
            self._after_failures(ids.tolist())
        return StepByEnv(ids, step)

    def _admit(self, actions: Mapping[int, Any]) -> tuple[np.ndarray, list[Any]]:
        """Ids and actions of a step that is allowed; nothing has changed if it is not."""
        if not actions:
            raise ValueError("step() got no actions")
        if not (isinstance(actions, ByEnv) and actions.ids is self._run_ids):
            self._check_open()
            is_stacked = isinstance(actions, ByEnv) and actions.is_stacked
            named = actions.ids.tolist() if is_stacked else list(actions)  # type: ignore[attr-defined]
            self._check_known(named)
            for i in named:
                if self._states[i] != EnvState.RUN:
                    raise RuntimeError(
                        f"env {i} cannot step: it is {self._states[i].name}, not RUN "
                        f"(ready are {self.ready_obs_id})"
                    )
        ids, stacked = stacked_of(actions)
        if ids is not self._all_ids and ids.tolist() == self._all_ids.tolist():
            ids = self._all_ids
        rows = self._action_rows(stacked, len(ids))
        self._flights.record(ids, stacked)
        return ids, rows

    def _step_envs(self, ids: list[int], actions: list[Any]) -> list[BaseEnvTimestep]:
        steps: list[BaseEnvTimestep] = []
        pairs = zip(ids, actions, strict=True)
        while len(steps) < len(ids):
            # One `try` for all: the iterator goes on behind the env that failed.
            try:
                if self._step_timeout is None:
                    for i, action in pairs:
                        steps.append(self._envs[i].step(action))
                for i, action in pairs:
                    with self._deadline("step", i):
                        steps.append(self._envs[i].step(action))
            except Exception as error:  # An env may raise anything.
                steps.append(self._broken_step(i, error))
        return steps

    def _broken_step(self, i: int, error: Exception) -> BaseEnvTimestep:
        """Stands in for the step that failed; `_after_failures` deals with the env."""
        self._broken[i] = error
        info = {"abnormal": True, "error": f"{type(error).__name__}: {error}"}
        shape = getattr(self.reward_space, "shape", None) or ()
        no_reward = np.zeros(shape, dtype=np.float32) if np.prod(shape) > 1 else 0.0
        return BaseEnvTimestep(take(self._obs, i), no_reward, False, info)

    def _vec_step(
        self, ids: np.ndarray, steps: list[BaseEnvTimestep], verified: bool = False
    ) -> VecStep:
        try:
            obs, reward, done, info = zip(*steps, strict=True)
        except (ValueError, TypeError) as error:
            wrong = next(s for s in steps if not isinstance(s, tuple) or len(s) != 4)
            raise not_a_timestep(wrong) from error
        try:
            obs_column = self._obs_columns.stack(obs)
            rewards = reward_column(reward)
            sound = not (has_nan(obs_column) or has_nan(rewards))
        except RowError:
            if verified:  # Each row is sound, they only do not fit each other.
                raise
            sound = False
        if not sound:
            steps = list(map(self._verified, ids.tolist(), steps))
            return self._vec_step(ids, steps, verified=True)
        count = len(steps)
        truncated, abnormal = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        if any(info):
            for k, said in enumerate(info):
                abnormal[k] = bool(said and said.get("abnormal"))
                truncated[k] = bool(done[k]) and is_truncated(said)
        dones = np.array(list(map(bool, done)))
        return VecStep(obs_column, rewards, dones, list(info), truncated, abnormal, ids)

    def _verified(self, i: int, step: BaseEnvTimestep) -> BaseEnvTimestep:
        """The step, or if it cannot be used what stands in for it."""
        try:
            stack_checked(self._obs_columns, [step.obs])
            if has_nan(reward_column([step.reward])):
                raise RowError(nan_message("reward"))
        except RowError as error:
            return self._broken_step(i, error)
        return step

    def _after_done(self, step: VecStep) -> None:
        ended = []
        for k in np.flatnonzero(step.done).tolist():
            i = int(step.env_id[k])
            self._episodes[i] += not step.abnormal[k]
            if self._episodes[i] >= self._cfg["episode_num"]:
                self._states[i] = EnvState.DONE
            elif self._cfg["auto_reset"]:
                ended.append(i)
            else:
                self._states[i] = EnvState.NEED_RESET
        if ended:
            self._reset_envs(ended)
        self._note_states()

    def _after_failures(self, ids: list[int]) -> None:
        broken, self._broken = self._broken, {}
        for i in ids:
            if i not in broken:
                self._failures.pop(i, None)
        worst: int | None = None
        for i, error in broken.items():
            self.faults[fault_kind(error)] += 1
            self._failures[i] = self._failures.get(i, 0) + 1
            if self._failures[i] >= self._max_retry:
                self._states[i] = EnvState.ERROR
                worst = i if worst is None else worst
            else:
                logger.warning("Dropping an episode: %s", self._flights.report(i, error))
                self._renew(i)
                self._reset_envs([i])
        self._note_states()
        if worst is not None:
            cause = broken[worst]
            raise env_error(self._flights.report(worst, cause), cause) from cause

    def state_dict(self) -> dict[str, Any]:
        """All that a bit-exact continuation needs; 'envs' is None if an env cannot be pickled."""
        self._check_open()
        return {
            "envs": self._pickled_envs(),
            "flights": self._flights.state_dict(),
            **{name: deepcopy(getattr(self, f"_{name}")) for name in _SAVED},
            "states": [int(state) for state in self._states],  # checkpoints take plain data only
        }

    def _pickled_envs(self) -> list[bytes] | None:
        try:
            return [pickle.dumps(env) for env in self._envs]
        except UNPICKLABLE as error:
            self._tell_unpicklable(error)
            return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called; with new episodes if the envs could not be saved."""
        self._check_state(state)
        self.close()
        for name in _SAVED:
            setattr(self, f"_{name}", deepcopy(state[name]))
        if state["envs"] is None:
            self._begin_anew()
        else:
            self._check_thread()
            self._flights.load_state_dict(state["flights"])
            self._envs = [pickle.loads(env) for env in state["envs"]]
            self._env_ref, self._ref_is_unused = self._envs[0], False
        self._states = [EnvState(value) for value in state["states"]]
        self._note_states()

    def _begin_anew(self) -> None:
        """New episodes, and with dynamic seeds other ones than the run began with."""
        self._make_envs()
        self._obs = None
        self._seed_anew()
        self._reset_envs(list(range(self.env_num)))
