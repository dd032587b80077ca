"""Local executor: many envs, one after the other, in this process.

Public calls speak rows (`{env_id: ...}`); inside, and in their `.stacked`, they are columns.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ding.envs.base_env import BaseEnvTimestep, StepByEnv, VecStep, is_truncated
from ding.envs.manager.columns import (
    ActionRows,
    ObsColumns,
    RowError,
    all_finite,
    has_nan,
    no_reward,
    obs_columns,
    reward_column,
    stack_checked,
)
from ding.envs.manager.env_access import close_quietly, look_up
from ding.envs.manager.env_results import checked_step, is_plain, plain_columns
from ding.envs.manager.faults import Fault, Phase, check_deadlines_possible, deadline, fault_of
from ding.envs.manager.interface import EnvManager
from ding.envs.manager.slot import EnvState, Slot, seed_env
from ding.utils.batch import take


class BaseEnvManager(EnvManager):
    """`launch`, then `ready_obs` and `step` in turn until `done`, then `close`."""

    _envs: list[Any]
    _columns: ObsColumns | None = None
    _action_rows: ActionRows

    def _start(self) -> None:
        self._envs, self._obs = [], None
        self._faults_of_step: dict[int, Fault] = {}
        self._check_thread()
        self._envs.append(self._reference.claim())
        for fn in self._env_fn[1:]:
            self._envs.append(fn())
        for slot in self._slots:
            self._set_replay_path(slot)

    def _check_thread(self) -> None:
        if self._cfg["step_timeout"] is not None or self._cfg["reset_timeout"] is not None:
            check_deadlines_possible()

    def _set_replay_path(self, slot: Slot) -> None:
        if slot.replay_path is not None:
            self._envs[slot.env_id].enable_save_replay(slot.replay_path)

    def _stop(self) -> None:
        with ExitStack() as stack:  # Closes all, also when one of them fails to.
            for env in self._envs:
                stack.callback(env.close)
            self._envs = []

    def _obs_columns(self) -> ObsColumns:
        # Not before the first reset: some envs know their spaces only then.
        if self._columns is None:
            self._columns = obs_columns(self.observation_space)
            python_actions = all(getattr(env, "python_actions", False) for env in self._envs)
            self._action_rows = ActionRows(self.action_space, python_actions)
        return self._columns

    def _reset_slots(self, slots: Sequence[Slot], *, broken: bool = False) -> None:
        parts = [self._reset_env(slot, broken) for slot in slots]
        columns = self._obs_columns()
        first = columns.joined(parts)
        ids = [slot.env_id for slot in slots]
        whole = self._obs is None or ids == self._all_ids.tolist()
        self._obs = first if whole else columns.replaced(self._obs, ids, first)

    def _reset_env(self, slot: Slot, broken: bool) -> Any:
        """Column of the first observation, after as many attempts as the config allows.

        `broken`: the env has failed before this reset.
        """
        instance = slot.instance
        instance.attempts = 0
        while True:
            try:
                if instance.attempts:
                    time.sleep(self._cfg["retry_waiting_time"])
                if broken:
                    self._renew(slot)
                column = self._reset_once(slot)
            except Exception as error:  # An env may raise anything.
                self._failures.reset_failed(slot, instance, fault_of(error, Phase.RESET))
                broken = True
                continue
            self._slots.enter(slot, EnvState.RUN)
            return column

    def _reset_once(self, slot: Slot) -> Any:
        i, env, instance = slot.env_id, self._envs[slot.env_id], slot.instance
        if instance.seed_is_due:
            self._send_seed(slot)
            instance.seed_is_due = False
        self._flights.began(i, slot.reset_kwargs)
        try:
            if self._cfg["reset_timeout"] is None:
                obs = env.reset(**slot.reset_kwargs)
            else:
                with deadline(self._cfg["reset_timeout"], f"reset of env {i}"):
                    obs = env.reset(**slot.reset_kwargs)
        finally:
            self._flights.told(i, getattr(env, "episode_seed", None))
        return stack_checked(self._obs_columns(), [obs])

    def _send_seed(self, slot: Slot) -> None:
        seed, dynamic = slot.seed_of(slot.instance), slot.dynamic_seed
        env = self._envs[slot.env_id]
        assert seed is not None
        self._flights.seeded(slot.env_id, seed, dynamic)
        seed_env(env, seed, dynamic)

    def _renew(self, slot: Slot) -> None:
        if self._cfg["retry_type"] == "renew":
            i = slot.env_id
            close_quietly(self._envs[i])
            self._envs[i] = self._env_fn[i]()
            slot.renewed(slot.instance)
            self._set_replay_path(slot)

    def step(self, actions: Mapping[int, Any]) -> StepByEnv:
        """One step in every env that `actions` names; where an episode ends the next one begins."""
        ids, stacked = self._slots.admit(actions)
        rows = self._action_rows(stacked, len(ids))
        self._flights.record(ids, stacked)
        step = self._stack_steps(ids, self._step_envs(ids.tolist(), rows))
        if ids is self._all_ids:
            self._obs = step.obs
        else:
            self._obs = self._obs_columns().replaced(self._obs, ids, step.obs)
        if True in step.done.tolist():
            self._end_episodes(step)
        if self._faults_of_step or self._slots.any_failures:
            self._note_failures(ids.tolist())
        return StepByEnv(ids, step)

    def _step_envs(self, ids: list[int], actions: list[Any]) -> list[BaseEnvTimestep]:
        envs, steps = self._envs, list[BaseEnvTimestep]()
        limit, pairs = self._cfg["step_timeout"], zip(ids, actions, strict=True)
        while len(steps) < len(ids):
            # One `try` for all: the iterator goes on behind the env that failed.
            try:
                if limit is None:
                    for i, action in pairs:
                        steps.append(envs[i].step(action))
                for i, action in pairs:
                    with deadline(limit, f"step of env {i}"):
                        steps.append(envs[i].step(action))
            except Exception as error:  # An env may raise anything.
                steps.append(self._broken_step(i, error))
        return steps

    def _broken_step(self, i: int, error: Exception) -> BaseEnvTimestep:
        """A stand-in for the step that failed; `_note_failures` deals with the env."""
        self._faults_of_step[i] = fault = fault_of(error, Phase.STEP)
        info = {"abnormal": True, "error": fault.told}
        return BaseEnvTimestep(take(self._obs, i), no_reward(self.reward_space), False, info)

    def _stack_steps(
        self, ids: np.ndarray, steps: list[BaseEnvTimestep], verified: bool = False
    ) -> VecStep:
        columns = plain_columns(steps)
        if columns is None:
            steps = list(map(self._plain, ids.tolist(), steps))
            columns = list(zip(*steps, strict=True))
        obs, reward, done, info = columns
        try:
            obs_column = self._columns.stack(obs)  # type: ignore[union-attr]
            rewards = reward_column(reward)
            sound = not has_nan(obs_column) and all_finite(rewards)
        except RowError:
            if verified:  # Each row is sound, they only do not fit each other.
                raise
            sound = False
        if not sound:
            steps = list(map(self._verified, ids.tolist(), steps))
            return self._stack_steps(ids, steps, verified=True)
        count = len(steps)
        truncated, abnormal = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        if any(info):
            for k, said in enumerate(info):
                abnormal[k] = bool(said and said.get("abnormal"))
                truncated[k] = bool(done[k]) and is_truncated(said)
        dones = np.array(list(map(bool, done)))
        return VecStep(obs_column, rewards, dones, list(info), truncated, abnormal, ids)

    def _plain(self, i: int, step: Any) -> BaseEnvTimestep:
        """The step in plain types, or a stand-in if it cannot be used."""
        if is_plain(step):
            return step
        try:
            return checked_step(step)
        except (RowError, TypeError) as error:
            return self._broken_step(i, error)

    def _verified(self, i: int, step: BaseEnvTimestep) -> BaseEnvTimestep:
        """The step, or a stand-in if its numbers cannot be used."""
        try:
            stack_checked(self._obs_columns(), [step.obs])
            return checked_step(step)
        except RowError as error:
            return self._broken_step(i, error)

    def _end_episodes(self, step: VecStep) -> None:
        ended = []
        for k in np.flatnonzero(step.done).tolist():
            slot = self._slots[int(step.env_id[k])]
            if self._slots.episode_ended(slot, abnormal=bool(step.abnormal[k])):
                ended.append(slot)
        if ended:
            self._reset_slots(ended)

    def _note_failures(self, ids: list[int]) -> None:
        faults, self._faults_of_step = self._faults_of_step, {}
        for i in ids:
            if i not in faults:
                self._slots[i].failures = 0
        failure = None
        for i, fault in faults.items():
            self.faults[fault.kind] += 1
            slot = self._slots[i]
            too_many = self._failures.step_failed(slot, fault)
            failure = failure or too_many
            if too_many is None:
                self._reset_slots([slot], broken=True)
        self._slots.any_failures = any(slot.failures for slot in self._slots)
        if failure is not None:
            raise failure

    def _call(self, ids: Sequence[int], name: str, *args: Any) -> list[Any]:
        return [getattr(self._envs[i], name)(*args) for i in ids]

    def _look_up(self, name: str) -> list[tuple[str, Any]]:
        return [look_up(env, name) for env in self._envs]

    def _saved_envs(self) -> list[bytes]:
        return [pickle.dumps(env) for env in self._envs]

    def _executor_state(self) -> dict[str, Any]:
        return {"obs": self._obs}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._envs, self._obs = [], state["obs"]
        self._faults_of_step = {}
        self._check_thread()
        self._envs = [pickle.loads(env) for env in state["envs"]]
        self._reference.replace(self._envs[0])
        self._obs_columns()
