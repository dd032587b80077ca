"""Recorder: turns env steps into transitions, groups them by trajectory, counts episodes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from ding.envs.base_env import BaseEnvTimestep, VecStep
from ding.policy.needs import Needs
from ding.utils.batch import Batch, rows_of, stack, take
from ding.utils.log import WorkerLog
from ding.worker.collector.trajectory import PartialTransitions, TrajectoryStore

_KEPT_EPISODES = 100


class Recorder:
    """Transitions of one policy. Its seats are the envs, or those that it plays in them."""

    def __init__(self, log: WorkerLog) -> None:
        self._log = log
        self.envstep = 0
        self.dropped_steps = 0
        self.stale_steps = 0
        self.episodes = EpisodeLog()
        self._env: Any = None
        self._policy: Any = None
        self.needs = Needs()
        self.deferred: deque[Callable[[], None]] = deque()
        """Calls that store steps, made when there is time."""
        self._storing = threading.Lock()

    def begin(self, env: Any, n_seat: int | None = None) -> None:
        """Begin episodes in all envs of this manager; a seat is an env, or one of `n_seat`."""
        self._env = env
        n_seat = env.env_num if n_seat is None else n_seat
        self.store = TrajectoryStore(n_seat)
        self.partial = PartialTransitions(n_seat)
        self.episodes.begin(n_seat)

    def set_policy(self, policy: Any) -> None:
        self._policy = policy
        self.needs = Needs.of(policy)

    @property
    def observes(self) -> bool:
        """Whether the policy gathers statistics of what is collected."""
        return self.needs.statistics_observer is not None

    def number_episodes_from(self, first: int) -> None:
        self.episodes.number_from(first)

    def clear(self) -> None:
        """Forget the stored steps; those that are under way will be stale."""
        self.partial.mark_stale()
        self.store.clear()

    # --- steps that can wait -------------------------------------------------------------------

    def defer(self, obs: Any, output: Any, step: VecStep) -> None:
        """`remember` these steps when there is time."""
        self.deferred.append(partial(self.remember, obs, output, step))

    def defer_arrived(self, step: VecStep) -> None:
        """Store these steps, whose observations and actions are kept here, when there is time."""
        self.deferred.append(partial(self._remember_arrived, step))

    def store_deferred(self) -> None:
        with self._storing:
            while self.deferred:
                self.deferred.popleft()()

    # --- steps ---------------------------------------------------------------------------------

    def receive(self, step: VecStep) -> VecStep:
        """Store steps, whenever they were acted for; returns those that are stored."""
        acted_for = self.partial.note_arrival(step.env_id)
        if True in step.abnormal.tolist():
            step = self._drop_abnormal(step, acted_for)
        if self.partial.any_stale:
            step = self._drop_stale(step)
        if len(step.env_id):
            self.remember(*self.partial.rows(step.env_id), step)
        return step

    def _remember_arrived(self, step: VecStep) -> None:
        self.partial.note_arrival(step.env_id)
        self.remember(*self.partial.rows(step.env_id), step)

    def remember(self, obs: Any, output: Any, step: VecStep) -> None:
        """Store transitions from `obs`, by the actions in `output`, to `step`."""
        if self.needs.statistics_observer is not None:
            self.needs.statistics_observer(obs, step)
        if self.needs.process_rows:
            transition = self._transition_by_row(obs, output, step)
        else:
            transition = dict(self._policy.process_transition(obs, output, step))
        transition["done"] = step.done
        transition["truncated"] = step.truncated
        if self.needs.links_steps:
            transition["episode_id"] = self.episodes.id[step.env_id]
            transition["episode_step"] = self.episodes.length[step.env_id]
        at = self.store.append(step.env_id, transition, step.done)
        self._count(step, at)

    def _transition_by_row(self, obs: Any, output: Any, step: VecStep) -> Batch:
        rows = []
        for i in range(len(step.env_id)):
            info = step.info[i]
            one = BaseEnvTimestep(take(step.obs, i), step.reward[i], bool(step.done[i]), info)
            rows.append(dict(self._policy.process_transition(take(obs, i), take(output, i), one)))
        return stack(rows)

    def _count(self, step: VecStep, at: Any) -> None:
        self.envstep += len(step.env_id)
        ended = self.episodes.add(step, at)
        if ended:
            self._policy.reset(ended)

    def _drop_abnormal(self, step: VecStep, acted_for: np.ndarray) -> VecStep:
        """Forget the episodes that broke; the other envs' steps count as ever."""
        broken = step.env_id[step.abnormal]
        # An env may be lost with the process of another one, while it only waits.
        n_step = int(acted_for[step.abnormal].sum())
        self.envstep += n_step
        self.dropped_steps += n_step + self.cut_episodes(broken.tolist())
        self._policy.reset(broken.tolist())
        self.partial.pop_stale(broken)
        self._log.info(f"abnormal step in env {broken.tolist()}: their episodes are dropped")
        # After a failure (`error` says which) the manager has reset the env; others need it here.
        infos = zip(step.env_id.tolist(), step.info, strict=True)
        unreset = [i for i, info in infos if info.get("abnormal") and "error" not in info]
        if unreset:
            self._env.reset(dict.fromkeys(unreset))
        return steps_at(step, np.flatnonzero(~step.abnormal))

    def cut_episodes(self, seats: list[int]) -> int:
        """Forget the episodes that these seats are in; returns how many stored steps that were.

        Steps that follow are those of other episodes.
        """
        self.episodes.begin_in(seats)
        return sum(self.store.drop_unfinished(seat) for seat in seats)

    def _drop_stale(self, step: VecStep) -> VecStep:
        """Count the steps that were acted for with an earlier policy, and no more than that."""
        stale = self.partial.pop_stale(step.env_id)
        if stale.any():
            self.stale_steps += int(stale.sum())
            dropped = steps_at(step, np.flatnonzero(stale))
            self._count(dropped, rows_of(dropped.env_id))
            return steps_at(step, np.flatnonzero(~stale))
        return step

    # --- state ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "envstep": self.envstep,
            "dropped_steps": self.dropped_steps,
            "stale_steps": self.stale_steps,
            **self.episodes.state_dict(),
            "store": self.store.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], *, running: bool) -> None:
        """`running`: the envs go on with their episodes, too."""
        self.envstep, self.dropped_steps = state["envstep"], state["dropped_steps"]
        self.stale_steps = state["stale_steps"]
        self.partial.clear()
        self.episodes.load_state_dict(state, running)
        if running:
            self.store.load_state_dict(state["store"])


class EpisodeLog:
    """Episodes that the seats are in, and the last ones that ended."""

    def __init__(self) -> None:
        self.count = 0
        """Episodes that ended."""
        self.on_end: Callable[[float, int], None] | None = None
        """Called with return and length of every episode that ends."""
        self._recent: deque[tuple[float, int]] = deque(maxlen=_KEPT_EPISODES)
        self._next_id = 0
        self.begin(0)

    def begin(self, n_seat: int) -> None:
        """Begin an episode in each of so many seats."""
        self._return = np.zeros(n_seat, dtype=np.float64)
        self.length = np.zeros(n_seat, dtype=np.int64)
        """Steps of each seat's episode so far."""
        self.id = np.zeros(n_seat, dtype=np.int64)
        """Number of each seat's episode, unlike any other."""
        self.begin_in(range(n_seat))

    def begin_in(self, seats: Sequence[int]) -> None:
        index = list(seats)
        self._return[index] = 0.0
        self.length[index] = 0
        self.id[index] = self._next_id + np.arange(len(index))
        self._next_id += len(index)

    def number_from(self, first: int) -> None:
        """Let ids begin here, those of the running episodes included."""
        self.id[:] = first + np.arange(len(self.id))
        self._next_id = first + len(self.id)

    def add(self, step: VecStep, at: Any) -> list[int]:
        """Count one step of each seat at this index; returns the seats whose episodes are over."""
        self._return[at] += step.reward if step.reward.ndim == 1 else summed_reward(step.reward)
        self.length[at] += 1
        if True not in step.done.tolist():
            return []
        ended: list[int] = step.env_id[step.done].tolist()
        episodes = [(float(self._return[i]), int(self.length[i])) for i in ended]
        self._recent.extend(episodes)
        self.count += len(ended)
        self.begin_in(ended)
        if self.on_end is not None:
            for return_, length in episodes:
                self.on_end(return_, length)
        return ended

    @property
    def mean_return(self) -> float | None:
        return float(np.mean([r for r, _ in self._recent])) if self._recent else None

    def last_returns(self, n: int) -> list[float]:
        """Returns of the last `n` episodes, of 100 at most."""
        return [r for r, _ in islice(self._recent, max(len(self._recent) - n, 0), None)]

    def summary(self) -> dict[str, float]:
        """Returns and lengths of the last episodes; there must be one."""
        returns, lengths = zip(*self._recent, strict=True)
        return {
            "reward_mean": float(np.mean(returns)),
            "reward_std": float(np.std(returns)),
            "reward_max": float(np.max(returns)),
            "reward_min": float(np.min(returns)),
            "avg_episode_length": float(np.mean(lengths)),
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "episode_count": self.count,
            "recent": [list(pair) for pair in self._recent],
            "return": self._return.copy(),
            "length": self.length.copy(),
            "episode_id": self.id.copy(),
            "next_episode": self._next_id,
        }

    def load_state_dict(self, state: dict[str, Any], running: bool) -> None:
        """`running`: the envs go on with their episodes, too."""
        self.count = state["episode_count"]
        self._recent.clear()
        self._recent.extend((r, n) for r, n in state["recent"])
        self._next_id = state["next_episode"]
        if running:
            self._return[:], self.length[:] = state["return"], state["length"]
            self.id[:] = state["episode_id"]
        else:
            self.begin_in(range(len(self.id)))


def summed_reward(reward: np.ndarray) -> np.ndarray:
    """(N,): the sum over each row of vector rewards (N, ...)."""
    return reward.reshape(len(reward), -1).sum(axis=1)


def steps_at(step: VecStep, index: np.ndarray) -> VecStep:
    return VecStep(
        obs=take(step.obs, index),
        reward=step.reward[index],
        done=step.done[index],
        info=[step.info[i] for i in index.tolist()],
        truncated=step.truncated[index],
        abnormal=step.abnormal[index],
        env_id=step.env_id[index],
    )
