"""Worker pool: the parent's side of env workers, with their pipes and the shared block."""

from __future__ import annotations

import atexit
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Protocol

import cloudpickle  # type: ignore[import-untyped]

from ding.envs.manager.workers.channel import (
    Command,
    ParentEnds,
    PipeReader,
    command,
    step_commands,
)
from ding.envs.manager.workers.shared_block import Fd, SharedBlock
from ding.envs.manager.workers.worker import WorkerSetup, work
from ding.utils.errors import ConfigError, EnvError

_SPIN_SECONDS = 5e-5
_BUSY_SECONDS = 1.0
_CLOSE_SECONDS = 3.0
# An env is cheap, and shares a process with others, if its steps and resets take less than this.
_CHEAP_STEP, _CHEAP_RESET = 2e-4, 5e-3
_TRIAL_STEPS, _TRIAL_SECONDS, _TRIAL_START_SECONDS = 20, 0.3, 20.0


class Handle(Protocol):
    """A running worker."""

    sentinel: int

    def kill(self) -> None: ...

    def join(self, timeout: float) -> bool:
        """Whether it has ended."""

    def how_it_ended(self) -> str: ...

    def close(self) -> None:
        """Free what is left of a worker that has ended."""


class WorkerProcess:
    def __init__(self, setup: WorkerSetup, context: str) -> None:
        # The types of contexts have no common `Process`.
        mp: Any = get_context(context)
        name = f"env-worker-{setup.index}"
        self._process = mp.Process(target=work, args=(setup,), daemon=True, name=name)
        self._process.start()
        self.pid: int = self._process.pid
        self.sentinel: int = self._process.sentinel

    def kill(self) -> None:
        self._process.kill()

    def join(self, timeout: float) -> bool:
        self._process.join(timeout)
        return self._process.exitcode is not None

    def how_it_ended(self) -> str:
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def close(self) -> None:
        with suppress(ValueError):  # It does not end even when killed: leave it to the kernel.
            self._process.close()


@dataclass(frozen=True)
class PoolPlan:
    """Envs of a pool and how its workers are started."""

    env_fns: Sequence[Callable[[], Any]]
    """One for every row of the block."""
    observation_space: Any
    per_worker: int
    context: str
    """'fork', 'spawn', 'forkserver' or 'thread'."""
    start: Callable[[WorkerSetup], Handle]

    @property
    def factories(self) -> list[Any]:
        """The env factories of every worker, pickled if it does not share our memory."""
        starts = range(0, len(self.env_fns), self.per_worker)
        parts = [list(self.env_fns[start : start + self.per_worker]) for start in starts]
        if self.context in ("fork", "thread"):
            return parts
        try:
            return [cloudpickle.dumps(part) for part in parts]
        except Exception as error:
            raise EnvError(
                f"the env factories cannot be sent to a process of context '{self.context}': "
                f"{error!r}; make them of picklable parts (functools.partial of an env class and "
                "its cfg), or set env.manager.context='fork'"
            ) from error


@dataclass
class Worker:
    """One worker as the parent knows it."""

    rows: range
    incarnation: int
    handle: Handle
    commands: int
    lifeline: int
    pickles: int
    reader: PipeReader


class WorkerPool:
    """Starts the workers, carries commands to them and answers back; knows nothing of episodes."""

    def __init__(self, plan: PoolPlan, block: SharedBlock) -> None:
        self._plan, self.block = plan, block
        self._owner = os.getpid()
        count = len(plan.env_fns)
        self.worker_of = [row // plan.per_worker for row in range(count)]
        self._ends = ParentEnds()
        self._answers, self._answers_in = self._ends.pipe(parent_reads=True)
        os.set_blocking(self._answers, False)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._by_sentinel: dict[int, int] = {}
        self.dead: set[int] = set()
        """Workers whose death was noticed and that were not restarted yet."""
        self.workers: list[Worker] = []
        self.closed = False
        atexit.register(self.shut_down)
        try:
            self._factories = plan.factories
            spins = len(self._factories) < _cores() and plan.context != "thread"
            self._spin = _SPIN_SECONDS if spins else 0.0
            for w in range(len(self._factories)):
                rows = range(w * plan.per_worker, min((w + 1) * plan.per_worker, count))
                self.workers.append(self._started(w, rows, 0))
        except BaseException:
            self.shut_down()
            raise
        self._all_steps = [(w, step_commands(worker.rows)) for w, worker in enumerate(self.workers)]
        self._single_steps = [step_commands([row]) for row in range(count)]

    def _started(self, w: int, rows: range, incarnation: int) -> Worker:
        command_in, command_out = self._ends.pipe(parent_reads=False)
        life_in, life_out = self._ends.pipe(parent_reads=False)
        pickle_in, pickle_out = self._ends.pipe(parent_reads=True)
        os.set_blocking(command_out, False)
        setup = WorkerSetup(
            index=w,
            incarnation=incarnation,
            first_row=rows.start,
            env_fns=self._factories[w],
            observation_space=self._plan.observation_space,
            block=self.block,
            commands=Fd(command_in),
            answers=Fd(self._answers_in),
            pickles=Fd(pickle_out),
            lifeline=Fd(life_in),
            spin=self._spin,
        )
        self.block["running"][w] = -1
        try:
            handle = self._plan.start(setup)
        finally:
            for fd in (command_in, life_in, pickle_out):
                os.close(fd)
        self._by_sentinel[handle.sentinel] = w
        self._poll.register(handle.sentinel, select.POLLIN)
        reader = PipeReader(pickle_in)
        return Worker(rows, incarnation, handle, command_out, life_out, pickle_in, reader)

    def send_steps(self, rows: list[int] | None) -> list[tuple[int, bytes]]:
        """Command steps in these rows (None: in all); workers and bytes that did not fit."""
        if rows is None:
            sends = self._all_steps
        elif self._plan.per_worker == 1 or len(rows) == 1:
            sends = [(self.worker_of[row], self._single_steps[row]) for row in rows]
        else:
            by_worker: dict[int, list[int]] = {}
            for row in rows:
                by_worker.setdefault(self.worker_of[row], []).append(row)
            sends = [(w, step_commands(part)) for w, part in by_worker.items()]
        unsent = []
        for w, data in sends:
            sent = self.send_some(w, data)
            if sent < len(data):
                unsent.append((w, data[sent:]))
        return unsent

    def send_some(self, w: int, data: bytes | memoryview) -> int:
        """How many bytes the pipe took; all of them if the worker is dead, which is seen later."""
        try:
            return os.write(self.workers[w].commands, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return len(data)

    def wait(self, timeout: float) -> None:
        """Wait for an answer or the death of a worker."""
        events = None
        if self._spin:
            until = time.perf_counter() + min(self._spin, timeout)
            while not events and time.perf_counter() < until:
                events = self._poll.poll(0)
        for fd, _ in events or self._poll.poll(timeout * 1000):
            if fd != self._answers and fd in self._by_sentinel:
                self.dead.add(self._by_sentinel[fd])

    def answers(self) -> bytes:
        """Records that have arrived, maybe none."""
        try:
            return os.read(self._answers, 65536)
        except BlockingIOError:
            return b""

    def look_for_dead(self) -> None:
        """Find deaths that no sentinel tells of: another process may have inherited it."""
        self.dead |= {w for w, worker in enumerate(self.workers) if worker.handle.join(0)}

    def kill(self, w: int) -> str:
        """Make sure that a worker is gone; how it ended."""
        handle = self.workers[w].handle
        handle.kill()
        handle.join(_CLOSE_SECONDS)
        return handle.how_it_ended()

    def restart(self, w: int) -> None:
        """Start a new worker in place of one that is gone."""
        worker = self.workers[w]
        self.dead.discard(w)
        self._poll.unregister(worker.handle.sentinel)
        self._by_sentinel.pop(worker.handle.sentinel)
        worker.handle.close()
        self._ends.close(worker.commands, worker.lifeline, worker.pickles)
        self.workers[w] = self._started(w, worker.rows, (worker.incarnation + 1) % 2**16)

    def shut_down(self) -> None:
        """Let the workers close their envs, kill those that do not, free everything."""
        if self.closed or os.getpid() != self._owner:
            return
        self.closed = True
        atexit.unregister(self.shut_down)
        for w, worker in enumerate(self.workers):
            self.send_some(w, command(Command.CLOSE, 0))
            # A worker that writes a long answer must not wait for a reader.
            self._ends.close(worker.pickles, worker.commands)
        began = time.monotonic()
        for w in range(len(self.workers)):
            self._await_end(w, began)
        self._ends.close()
        os.close(self._answers_in)
        os.close(self.block.fd.number)

    def _await_end(self, w: int, began: float) -> None:
        handle, ended = self.workers[w].handle, False
        for limit in (_BUSY_SECONDS, _CLOSE_SECONDS):
            ended = ended or handle.join(max(began + limit - time.monotonic(), 0.01))
            if self.block["running"][w] >= 0:
                break  # It did not even come to closing its envs.
        if not ended:
            handle.kill()
            handle.join(_CLOSE_SECONDS)
        handle.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def envs_per_worker(cfg: Mapping[str, Any], env_fns: Sequence[Callable[[], Any]]) -> int:
    """As configured; 'auto' gives every core an equal part of cheap envs, others one each."""
    wanted = cfg["envs_per_worker"]
    if isinstance(wanted, int) and wanted >= 1:
        return wanted
    if wanted != "auto":
        raise ConfigError(f"env.manager.envs_per_worker: 'auto' or a positive int, not {wanted!r}")
    share = -(-len(env_fns) // _cores())
    return share if share > 1 and _is_cheap(env_fns[0], cfg["context"]) else 1


def _is_cheap(env_fn: Callable[[], Any], context: str) -> bool:
    """Try an env in a process that is thrown away, since it may do anything."""
    mp: Any = get_context(context)
    ours, theirs = mp.Pipe(duplex=False)
    portable = env_fn if context == "fork" else cloudpickle.dumps(env_fn)
    process = mp.Process(target=_try_out, args=(portable, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        started = ours.poll(_TRIAL_START_SECONDS) and ours.recv()
        if not started or not ours.poll(_TRIAL_SECONDS):
            return False
        step, reset = ours.recv()
        return bool(step < _CHEAP_STEP and reset < _CHEAP_RESET)
    except EOFError:
        return False
    finally:
        process.kill()
        process.join()
        ours.close()


def _try_out(env_fn: Callable[[], Any] | bytes, answer: Connection) -> None:
    answer.send(True)
    env = pickle.loads(env_fn)() if isinstance(env_fn, bytes) else env_fn()
    env.reset()  # The first one may build the simulator.
    began = time.perf_counter()
    env.reset()
    reset = time.perf_counter() - began
    quickest = float("inf")
    for _ in range(_TRIAL_STEPS):
        action = env.random_action()
        began = time.perf_counter()
        done = env.step(action).done
        quickest = min(quickest, time.perf_counter() - began)
        if done:
            env.reset()
    answer.send((quickest, reset))
