"""Overlapped inference: the policy acts for some envs while others step.

Threads follow the leader/followers pattern (Schmidt et al., Pattern-Oriented Software Architecture
2). One thread at a time leads: it waits until envs have stepped, stores the steps and takes the
envs that wait for an action. Then a follower leads, while this one asks the policy and acts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ding.envs.base_env import VecStep
from ding.utils.batch import ByEnv, rows_of
from ding.worker.collector.recorder import Recorder
from ding.worker.collector.waiting_envs import check_alive, only_active, rows_at

# Seconds after which a thread that waits for envs looks whether the others have given up.
_PATIENCE = 0.1
_PAUSE = 0.0005
# A forward that sleeps this long (seconds), and longer than it computes, leaves time for another.
_SLEEPS = 0.0005
# So many of them in a row: one that sleeps once may only have been pushed off its core.
_IN_A_ROW = 3

Lead = Callable[[], Sized | None]
Process = Callable[[Any], None]
Forward = Callable[[ByEnv, Mapping[str, Any]], tuple[np.ndarray, Any]]


@dataclass
class Stretch:
    """One stretch of steps, and the condition that ends it."""

    enough: Callable[[VecStep], bool]
    policy_kwargs: Mapping[str, Any]
    active: np.ndarray | None
    """Mask of the envs that may act; None for all."""
    budget: float
    """Limit of the steps that are begun, so that none is still under way at the end."""
    may_defer: bool
    """`enough` does not look at stored steps: they can wait until the envs have their actions."""
    taken: int = 0
    patience: float = 0.0  # The first look takes only steps that have come since the last stretch.


class OverlappedInference:
    """The loop between a manager that has `send` and `recv` and a policy, in several threads."""

    def __init__(self, env: Any, recorder: Recorder, forward: Forward, overlap: int | str) -> None:
        """`overlap` forwards at once; 'auto': one, and more of them while they only sleep."""
        self._env, self._recorder, self._forward = env, recorder, forward
        self._threads = LeaderFollowers(None if overlap == "auto" else int(overlap), env.env_num)
        self._counts_waiting = hasattr(type(env), "waiting_num")
        # Chosen to act, and their steps have not come.
        self._busy = np.zeros(env.env_num, dtype=bool)

    @property
    def threads(self) -> int:
        """Forwards that may run at once now."""
        return self._threads.count

    def run(self, stretch: Stretch, *, wait: bool) -> None:
        """Step envs until `enough`; without `wait` the policy may still be asked for the next."""
        lead, act = partial(self._lead, stretch), partial(self._act, stretch)
        try:
            self._threads.run(lead, act, wait=wait)
        except BaseException:
            with suppress(Exception):  # The first error matters.
                self._recorder.store_deferred()
            self._recorder.deferred.clear()
            if not self._env.closed:  # Nobody will act for the envs that wait now.
                self._busy[self._env.waiting_obs.ids] = False
            raise

    def _lead(self, stretch: Stretch) -> ByEnv | None:
        """Store the steps that come; the envs to act for next, or None if that was enough."""
        self._recorder.store_deferred()
        steps = self._env.recv(stretch.patience)
        stretch.patience = _PATIENCE
        if len(steps):
            step: VecStep = steps.stacked
            if stretch.may_defer and self._only_these_wait(step):
                return self._deferred(step, stretch)
            step = self._receive(step)
            stretch.taken += len(step.env_id)
            if stretch.enough(step):
                return None
        elif not self._busy.any():
            check_alive(self._env, stretch.active)
        obs = self._choose(stretch)
        if not len(obs) and not len(steps):
            time.sleep(_PAUSE)  # A manager need not wait while it has nothing to wait for.
        return obs

    def _only_these_wait(self, step: VecStep) -> bool:
        """Whether nothing ended in this step and no other env needs an action: most often."""
        if not self._counts_waiting or self._recorder.partial.any_stale:
            return False
        if True in step.done.tolist() or True in step.abnormal.tolist():
            return False
        # An env that waits has just stepped, or a thread is asking the policy for it.
        return bool(np.count_nonzero(self._busy) - self._env.in_flight == self._env.waiting_num)

    def _deferred(self, step: VecStep, stretch: Stretch) -> ByEnv | None:
        """Let the same envs act again before their steps are stored, unless it is enough."""
        self._recorder.defer_arrived(step)
        stretch.taken += len(step.env_id)
        if not stretch.enough(step):
            return ByEnv(step.env_id, step.obs)  # These envs stay marked busy.
        self._recorder.store_deferred()
        self._busy[step.env_id] = False
        return None

    def _choose(self, stretch: Stretch) -> ByEnv:
        """Observations of the envs that act next; within the budget, those that are behind."""
        free = ~self._busy if stretch.active is None else stretch.active & ~self._busy
        obs = only_active(self._env.waiting_obs, free)
        if stretch.budget < np.inf:
            room = int(stretch.budget) - stretch.taken - int(self._busy.sum())
            behind = np.argsort(self._recorder.store.count[obs.ids], kind="stable")
            obs = rows_at(obs, np.sort(behind[: max(room, 0)]))
        self._busy[obs.ids] = True
        return obs

    def _act(self, stretch: Stretch, obs: ByEnv) -> None:
        """Ask the policy and let the envs step; runs beside other threads that do the same."""
        env_id, output = self._forward(obs, stretch.policy_kwargs)
        self._recorder.store_deferred()  # Reads these envs' last rows, which are now replaced.
        self._recorder.partial.put(env_id, obs.stacked, output)
        self._env.send(ByEnv(env_id, output["action"]))

    def _receive(self, step: VecStep) -> VecStep:
        self._busy[rows_of(step.env_id)] = False
        return self._recorder.receive(step)

    def drain(self) -> None:
        """Store the steps that are under way."""
        self._threads.wait_idle()
        while not self._env.closed and self._env.in_flight:
            steps = self._env.recv(_PATIENCE)
            if len(steps):
                self._receive(steps.stacked)

    def restart(self) -> None:
        """Forget which envs were chosen to act: all begin anew."""
        self._busy[:] = False

    def close(self) -> None:
        """End the threads; a later run starts new ones, and finds anew how many pay off."""
        self._threads.close()


class _Run:
    """State that the threads share; a thread that is late never meddles with the next run."""

    def __init__(self, lead: Lead, process: Process) -> None:
        self.lead, self.process = lead, process
        self.over = False


class LeaderFollowers:
    """A pool of threads: the caller of `run`, and others that rest between two runs."""

    def __init__(self, count: int | None, limit: int) -> None:
        """`count` threads, but not above the limit; None: one, and more while they only sleep."""
        self._limit = limit if count is None else min(count, limit)
        self._adapts = count is None
        self._slept_in_a_row = 0
        self._leadership = threading.Lock()
        self._changed = threading.Condition()
        self._run: _Run | None = None
        self._n_working = 0  # followers that have not come to rest
        self._error: BaseException | None = None
        self._followers: list[threading.Thread] = []
        self._generation = 0  # of followers; those of an older one end

    @property
    def count(self) -> int:
        """Threads now, the caller's among them."""
        return 1 + len(self._followers)

    def run(self, lead: Lead, process: Process, *, wait: bool = True) -> None:
        """`process(lead())` until `lead` gives None; after an empty answer it is asked again.

        With `wait` all `process` have ended on return; else those of followers may end later. An
        error in any thread ends the run and is raised here, or by whichever method is called next.
        """
        run = _Run(lead, process)
        try:
            self._raise_error()
            with self._changed:
                self._run = run
                self._changed.notify_all()
            while not self._adapts and self.count < self._limit:
                self._add_follower()
            self._work(run)
            self._run = None
            if wait:
                self.wait_idle()
            self._raise_error()
        except BaseException:
            run.over, self._run = True, None
            self.close()
            raise

    def wait_idle(self) -> None:
        """Wait until all `process` have ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._n_working)
        self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _work(self, run: _Run) -> None:
        while (event := self._next_event(run)) is not None:
            start, computed = time.perf_counter(), time.thread_time()
            run.process(event)
            computed = time.thread_time() - computed
            slept = time.perf_counter() - start - computed
            in_a_row = self._slept_in_a_row + 1
            self._slept_in_a_row = in_a_row if slept > max(_SLEEPS, computed) else 0

    def _next_event(self, run: _Run) -> Any:
        nobody_leads = not self._leadership.locked()
        with self._leadership:
            if nobody_leads and not run.over and self._pays_off():
                self._add_follower()  # All threads were processing as this one came back.
            while not run.over:
                event = run.lead()
                if event is None:
                    run.over = True
                elif len(event):
                    return event
        return None

    def _pays_off(self) -> bool:
        return self._slept_in_a_row >= _IN_A_ROW and self.count < self._limit

    def _add_follower(self) -> None:
        follower = threading.Thread(target=self._follow, args=(self._generation,), daemon=True)
        with self._changed:
            follower.start()
            self._followers.append(follower)

    def _follow(self, generation: int) -> None:
        last: _Run | None = None
        while (run := self._run_after(last, generation)) is not None:
            last = run
            try:
                self._work(run)
            except BaseException as error:  # Raised again in the caller's thread.
                self._error = self._error or error
                run.over = True
            with self._changed:
                self._n_working -= 1
                self._changed.notify_all()

    def _run_after(self, last: _Run | None, generation: int) -> _Run | None:
        """Rest until there is another run; None if this follower must end."""

        def is_over() -> bool:
            return generation != self._generation or self._run not in (None, last)

        with self._changed:
            self._changed.wait_for(is_over)
            if generation != self._generation:
                return None
            self._n_working += 1
            return self._run

    def close(self) -> None:
        """End the followers; a later run starts new ones."""
        with self._changed:
            followers, self._followers = self._followers, []
            self._generation += 1
            self._changed.notify_all()
        for follower in followers:
            _await_start(follower)
            if follower.is_alive():
                follower.join()
        self._slept_in_a_row = 0


def _await_start(thread: threading.Thread) -> None:
    """Wait for a thread whose start an interrupt cut short: it is there soon, or never will be."""
    until = time.monotonic() + 1.0
    while thread.ident is None and time.monotonic() < until:
        time.sleep(0.001)
