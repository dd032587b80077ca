"""Recorder: turns env steps into transitions, groups them by trajectory, counts episodes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ding.envs.base_env import VecStep
from ding.utils.batch import Batch, rows_of, stack, take
from ding.utils.log import WorkerLog
from ding.worker.collector.episodes import EpisodeLog
from ding.worker.collector.pending import Pending
from ding.worker.collector.ready import one_step, steps_at
from ding.worker.collector.trajectory import TrajectoryStore

Observe = Callable[[Any, VecStep], None]


class Recorder:
    def __init__(self, log: WorkerLog) -> None:
        self._log = log
        self.envstep = 0
        self.dropped_steps = 0
        self.stale_steps = 0
        self.episodes = EpisodeLog()
        self._env: Any = None
        self._policy: Any = None
        self.by_row = False
        self._deferred: deque[Callable[[], None]] = deque()
        self._storing = threading.Lock()

        self._links_steps = False
        self._next_episode = 0

    def begin(self, env: Any) -> None:
        """All envs of this manager are at the start of an episode."""
        self._env = env
        self._episode_id = np.zeros(env.env_num, dtype=np.int64)
        self._begin_episodes(np.arange(env.env_num))
        self.store = TrajectoryStore(env.env_num)
        self.pending = Pending(env.env_num)
        self.episodes.begin(env.env_num)

    def set_policy(
        self, policy: Any, *, by_row: bool, observe: Observe | None, links_steps: bool
    ) -> None:
        """`by_row`: its transitions are made of one env at a time; `observe` is told of steps.

        `links_steps`: each step says which episode it is of, and which step there.
        """
        self._policy, self.by_row, self._observe = policy, by_row, observe
        self.observes = observe is not None
        self._links_steps = links_steps

    def number_episodes_from(self, first: int) -> None:
        self._next_episode = first
        self._begin_episodes(np.arange(len(self._episode_id)))

    def _begin_episodes(self, env_id: np.ndarray) -> None:
        self._episode_id[env_id] = self._next_episode + np.arange(len(env_id))
        self._next_episode += len(env_id)

    # --- steps that can wait -------------------------------------------------------------------

    @property
    def has_deferred(self) -> bool:
        return bool(self._deferred)

    def defer(self, obs: Any, output: Any, step: VecStep) -> None:
        """`remember` them when there is time."""
        self._deferred.append(partial(self.remember, obs, output, step))

    def defer_arrived(self, step: VecStep) -> None:
        """The same of steps whose observations and actions are pending."""
        self._deferred.append(partial(self._remember_arrived, step))

    def store_deferred(self) -> None:
        with self._storing:
            while self._deferred:
                self._deferred.popleft()()

    def forget_deferred(self) -> None:
        self._deferred.clear()

    # --- steps ---------------------------------------------------------------------------------

    def receive(self, step: VecStep) -> VecStep:
        """Store steps, whenever they were acted for; returns those that are stored."""
        acted_for = self.pending.arrived(step.env_id)
        if True in step.abnormal.tolist():
            step = self._drop_abnormal(step, acted_for)
        if self.pending.any_stale:
            step = self._drop_stale(step)
        if len(step.env_id):
            self.remember(*self.pending.rows(step.env_id), step)
        return step

    def _remember_arrived(self, step: VecStep) -> None:
        self.pending.arrived(step.env_id)
        self.remember(*self.pending.rows(step.env_id), step)

    def remember(self, obs: Any, output: Any, step: VecStep) -> None:
        if self._observe is not None:
            self._observe(obs, step)
        transition = self._transition(obs, output, step)
        transition["done"] = step.done
        transition["truncated"] = step.truncated
        if self._links_steps:
            transition["episode_id"] = self._episode_id[step.env_id]
            transition["episode_step"] = self.episodes.length[step.env_id]
        self.store.append(step.env_id, transition, step.done)
        self._count(step)

    def _transition(self, obs: Any, output: Any, step: VecStep) -> Batch:
        if not self.by_row:
            return dict(self._policy.process_transition(obs, output, step))
        rows = [
            self._policy.process_transition(take(obs, i), take(output, i), one_step(step, i))
            for i in range(len(step.env_id))
        ]
        return stack([dict(row) for row in rows])

    def _count(self, step: VecStep) -> None:
        ids = step.env_id
        self.envstep += len(ids)
        ended = self.episodes.add(step, slice(None) if self.store.is_all(ids) else rows_of(ids))
        if ended:
            self._begin_episodes(np.array(ended))
            self._policy.reset(ended)

    def _drop_abnormal(self, step: VecStep, acted_for: np.ndarray) -> VecStep:
        """Forget the episodes that broke; the other envs' steps count as ever."""
        broken = step.env_id[step.abnormal].tolist()
        # An env may be lost with the process of another one, while it only waits.
        n_step = int(acted_for[step.abnormal].sum())
        self.envstep += n_step
        self.dropped_steps += n_step
        for i in broken:
            self.dropped_steps += self.store.drop_unfinished(i)
            self.episodes.begin_in(i)
        self._begin_episodes(np.array(broken))
        self.pending.unwanted(step.env_id[step.abnormal])
        self._policy.reset(broken)
        self._log.info(f"abnormal step in env {broken}: their episodes are dropped")
        # After a failure (`error` says which) the manager has reset the env; here the env told.
        infos = zip(step.env_id.tolist(), step.info, strict=True)
        told = [i for i, info in infos if info.get("abnormal") and "error" not in info]
        if told:
            self._env.reset(dict.fromkeys(told))
        return steps_at(step, np.flatnonzero(~step.abnormal))

    def _drop_stale(self, step: VecStep) -> VecStep:
        """Count the steps that nobody wants any more, and no more than that."""
        stale = self.pending.unwanted(step.env_id)
        if stale.any():
            self.stale_steps += int(stale.sum())
            self._count(steps_at(step, np.flatnonzero(stale)))
            return steps_at(step, np.flatnonzero(~stale))
        return step

    # --- state ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "envstep": self.envstep,
            "dropped_steps": self.dropped_steps,
            "stale_steps": self.stale_steps,
            **self.episodes.state_dict(),
            "episode_id": self._episode_id.copy(),
            "next_episode": self._next_episode,
            "store": self.store.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], *, running: bool) -> None:
        """`running`: the envs go on with their episodes, too."""
        self.envstep, self.dropped_steps = state["envstep"], state["dropped_steps"]
        self.stale_steps = state["stale_steps"]
        self._next_episode = state["next_episode"]
        self.pending.clear()
        self.episodes.load_state_dict(state, running)
        if running:
            self._episode_id[:] = state["episode_id"]
            self.store.load_state_dict(state["store"])
        else:
            self._begin_episodes(np.arange(len(self._episode_id)))
