"""What managers share that run one vector env instead of many envs."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any

import numpy as np

from ding.envs.base_env import StepByEnv, VecStep
from ding.envs.manager.columns import RowError, has_nan, nan_message
from ding.envs.manager.deadline import check_deadlines_possible, deadline
from ding.envs.manager.flight.file import fault_kind
from ding.envs.manager.old_interface import UNPICKLABLE, EnvState, ResetParam
from ding.envs.manager.vector.columns import fitting_actions
from ding.envs.manager.vector.envs import VectorEnvs
from ding.envs.manager.vector.failures import (
    NaNError,
    broken_step,
    causes_of,
    env_failure,
    nan_rows,
    report,
)
from ding.envs.manager.vector.simulators import Outcome
from ding.utils.batch import ByEnv, stacked_of, take

logger = logging.getLogger(__name__)

_SAVED = (
    *("obs", "return", "ticks", "begun", "episodes", "renewals"),
    *("failures", "seeds", "dynamic", "unsent"),
)


class VectorEnvManager(VectorEnvs):
    """`EnvManager` of one vector env, which steps all its envs together.

    An env that is not ready (its reset comes with the next step, it is DONE, or it was left out of
    a step at the beginning of an episode) idles along unseen and joins with its next episode.
    """

    # --- reset ---------------------------------------------------------------------------------

    def launch(self, reset_param: ResetParam | None = None) -> None:
        self._check_closed()
        if self._step_timeout is not None or self._cfg["reset_timeout"] is not None:
            check_deadlines_possible()
        self._check_param(reset_param or {})
        assert self._parts
        self._launched = True
        self._unsent = set(self._seeded())
        self.reset()

    def close(self) -> None:
        made, self._made = self._made, None
        self._clear()
        if made is not None:
            made[0].close()

    def reset(self, reset_param: ResetParam | None = None) -> None:
        """New episodes in all envs or in the given ones; those may have to end unseen first."""
        self._check_open()
        ids = list(self._all_ids.tolist() if reset_param is None else reset_param)
        self._check_param(reset_param or {})
        for i in ids:
            if reset_param is None or self._states[i] == EnvState.DONE:
                self._episodes[i] = 0
            self._set_state(i, EnvState.RESET)
        if reset_param is None:
            self._repeat_static_seeds()
        elif ids and self._simulators.resets_alone:
            try:
                self._obs = self._reset_some(ids, ids)
            except Exception as error:  # A vector env may raise anything.
                self.faults["reset"] += 1
                self._simulators.failed = True
                raise env_failure(f"reset of envs {ids} failed: {error!r}", error) from error
            self._join(ids)
        self._settle()

    def _settle(self) -> None:
        """If an env waits for its reset and no episode is on the way, begin in all at once."""
        if self._waiting and not (self._runs & (self._begun < self._ticks)).any():
            self._begin()
        self._note_states()

    def _begin(self) -> None:
        """Reset the vector env, in as many attempts as the config allows."""
        for attempt in range(self._max_retry):
            try:
                if attempt:
                    time.sleep(self._cfg["retry_waiting_time"])
                    self._renew()
                self._obs = self._reset_all()
            except Exception as error:  # A vector env may raise anything.
                self.faults["reset"] += 1
                self._simulators.failed = True
                latest = error
                continue
            return self._join(self._all_ids.tolist())
        failure = env_failure(
            f"the vector env's reset has exceeded max retries({self._max_retry}), and the latest "
            f"exception is: {latest!r}",
            latest,
        )
        self.close()
        raise failure from latest

    def _reset_all(self) -> Any:
        seeds, reseed = self._next_seeds(self._all_ids.tolist())
        with self._deadline("reset"):
            table = self._simulators.reset(seeds, reseed)
        if has_nan(table):
            raise RowError(nan_message("obs"))
        return table

    def _reset_some(self, ids: list[int], seeded: list[int]) -> Any:
        """The table after a reset of these envs, some of which only idle and need no seed."""
        by_env = dict(zip(seeded, self._next_seeds(seeded)[0], strict=True))
        with self._deadline("reset"):
            table = self._simulators.reset_some(ids, [by_env.get(i) for i in ids])
        if has_nan(take(table, ids)):
            raise NaNError(ids)
        return table

    def _renew(self) -> None:
        if self._cfg["retry_type"] == "renew" or self._simulators.has_processes:
            self._simulators.renew()
            for i in self._seeded():
                self._renewals[i] += 1
                self._unsent.add(i)

    def _join(self, ids: Iterable[int]) -> None:
        """These envs are at the first step of an episode."""
        for i in ids:
            self._return[i], self._begun[i] = 0.0, self._ticks
            if self._states[i] == EnvState.RESET:
                self._set_state(i, EnvState.RUN)

    def _deadline(self, what: str) -> AbstractContextManager[None]:
        seconds = self._cfg[f"{what}_timeout"]
        return nullcontext() if seconds is None else deadline(seconds, f"{what} of the vector env")

    # --- step ----------------------------------------------------------------------------------

    def step(self, actions: Mapping[int, Any]) -> StepByEnv:
        """One step in every env that `actions` names: all that are ready."""
        ids, columns = self._admit(actions)
        self._recent.append(columns)
        try:
            out, reward = self._outcome(ids, columns)
        except Exception as error:  # A vector env may raise anything.
            return StepByEnv(ids, self._broken_step(ids, error))
        if self._failures:
            self._failures = {}
        index: Any = slice(None) if ids is self._all_ids else ids
        self._return[index] += out.reward
        self._ticks += 1
        self._obs = out.table
        abnormal = out.info.flags("abnormal")
        step = VecStep(out.obs, reward, out.done, out.info, out.truncated, abnormal, ids)
        ended = True in out.done.tolist()
        if ended:
            self._end(step)
        self._join(out.fresh)
        if ended or self._run_ids is not self._all_ids:
            self._settle()
        return StepByEnv(ids, step)

    def _admit(self, actions: Mapping[int, Any]) -> tuple[np.ndarray, Any]:
        """Ids and columns of actions; nothing has changed if they are not allowed."""
        if not actions:
            raise ValueError("step() got no actions")
        if not (isinstance(actions, ByEnv) and actions.ids is self._run_ids):
            self._check_ids(actions)
        ids, stacked = stacked_of(actions)
        if ids is not self._all_ids and ids.tolist() == self._all_ids.tolist():
            ids = self._all_ids
        columns = fitting_actions(self._simulators.action_space, stacked, len(ids))
        if len(ids) < len(self._run_ids) and not self._simulators.holds:
            for i in set(self._run_ids.tolist()).difference(ids.tolist()):
                self._set_state(i, EnvState.RESET)  # It idles until its next episode begins.
            self._note_states()
        return ids, columns

    def _check_ids(self, actions: Mapping[int, Any]) -> None:
        self._check_open()
        is_stacked = isinstance(actions, ByEnv) and actions.is_stacked
        named = actions.ids.tolist() if is_stacked else list(actions)  # type: ignore[attr-defined]
        self._check_known(named)
        ready = self.ready_obs_id
        for i in named:
            if i not in ready:
                raise RuntimeError(
                    f"env {i} cannot step: it is {self._states[i].name}, not RUN "
                    f"(ready are {ready})"
                )
        left_out = [i for i in ready if i not in set(named) and self._begun[i] < self._ticks]
        if left_out and not self._simulators.holds:
            raise ValueError(
                f"step() leaves out envs {left_out} in the middle of their episodes, but "
                f"{self._simulators.vector!r} steps all its envs together: give actions for all "
                "of ready_obs, or use env.manager.type='base'"
            )

    def _outcome(self, ids: np.ndarray, columns: Any) -> tuple[Outcome, np.ndarray]:
        """What the actions led to, and the rewards as the policy sees them."""
        simulators, asked = self._simulators, None if ids is self._all_ids else ids
        if self._step_timeout is None:
            out = simulators.step(asked, columns)
        else:
            with self._deadline("step"):
                out = simulators.step(asked, columns)
        reward = out.reward.astype(np.float32)
        if reward.shape != ids.shape:
            raise RowError(f"rewards of {len(ids)} envs have the shape {reward.shape}")
        if has_nan(out.obs) or has_nan(reward):
            raise NaNError(nan_rows(out.obs, reward, ids))
        if out.over:
            out = self._reset_over(out, ids)
        return out, reward.clip(-1.0, 1.0) if self._rew_clip else reward

    def _reset_over(self, out: Outcome, ids: np.ndarray) -> Outcome:
        """Reset the envs whose episode is over, for simulators that do not do it themselves."""
        acted = set(ids[out.done].tolist())
        goes_on = [
            i
            for i in out.over
            if (self._goes_on(i) if i in acted else self._states[i] == EnvState.RESET)
        ]
        # If envs can stand still, one that nobody steps needs no reset.
        chosen = goes_on if self._simulators.holds else list(out.over)
        if not chosen:
            return out
        return out._replace(table=self._reset_some(chosen, goes_on), fresh=chosen)

    def _goes_on(self, i: int) -> bool:
        return self._cfg["auto_reset"] and self._episodes[i] + 1 < self._cfg["episode_num"]

    def _end(self, step: VecStep) -> None:
        """Tell and count what the end of an episode brings."""
        for k in np.flatnonzero(step.done).tolist():
            i, info = int(step.env_id[k]), step.info[k]
            info.setdefault("eval_episode_return", float(self._return[i]))
            if step.truncated[k]:
                info["truncated"] = True
            goes_on = self._goes_on(i)
            self._episodes[i] += not step.abnormal[k]
            over = self._episodes[i] >= self._cfg["episode_num"]
            waits = EnvState.DONE if over else EnvState.NEED_RESET
            self._set_state(i, EnvState.RESET if goes_on else waits)

    # --- failures ------------------------------------------------------------------------------

    def _broken_step(self, ids: np.ndarray, error: Exception) -> VecStep:
        """Drop the episodes of all envs: nobody knows what state the others are in."""
        causes, self._simulators.failed = causes_of(error), True
        self.faults[fault_kind(error)] += len(causes)
        self.faults["lost"] += max(len(ids) - len(causes), 0)
        self._failures = {i: self._failures.get(i, 0) + 1 for i in causes}
        said = report(error, [self._seeds[i] for i in ids.tolist()], self._recent)
        if max(self._failures.values()) >= self._max_retry:
            self._set_states([EnvState.ERROR] * self.env_num)
            raise env_failure(said, error) from error
        logger.warning("%s; the episodes of all its envs are dropped", said)
        step = broken_step(self._obs, ids, error)
        for i in ids.tolist():
            self._set_state(i, EnvState.RESET)
        self._renew()
        self._begin()
        self._note_states()
        return step

    # --- state ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that a bit-exact continuation needs; 'envs' is None if they cannot be pickled."""
        self._check_open()
        return {
            "envs": self._pickled(),
            **{name: deepcopy(getattr(self, f"_{name}")) for name in _SAVED},
            "states": [int(state) for state in self._states],  # checkpoints take plain data only
        }

    def _pickled(self) -> list[bytes] | None:
        try:
            return [pickle.dumps(self._parts)]
        except UNPICKLABLE as error:
            self._tell_unpicklable(error)
            return None

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called; with new episodes if the envs could not be saved."""
        self._check_state(state)
        self.close()
        for name in _SAVED:
            setattr(self, f"_{name}", deepcopy(state[name]))
        self._set_states([EnvState(value) for value in state["states"]])
        self._launched = True
        if state["envs"] is not None:
            self._made = pickle.loads(state["envs"][0])
        else:
            self._begin_anew()
        self._note_states()

    def _begin_anew(self) -> None:
        """New episodes, and with dynamic seeds other ones than the run began with."""
        self._seed_anew()
        self._set_states([EnvState.RESET] * self.env_num)
        self._begin()
