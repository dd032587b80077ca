"""The parent's side of its env workers: processes (or threads), pipes and the shared block."""

from __future__ import annotations

import atexit
import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Protocol

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from ding.envs.manager.workers.channel import (
    Command,
    OwnEnds,
    PickleReader,
    command,
    step_commands,
)
from ding.envs.manager.workers.shared import ColumnSpec, Fd, SharedBlock, reward_spec, space_specs
from ding.envs.manager.workers.worker import INFO_BYTES, WorkerSetup, work
from ding.utils.errors import EnvError

_SPIN_SECONDS = 5e-5
_BUSY_SECONDS = 1.0
_CLOSE_SECONDS = 3.0


@dataclass(frozen=True)
class Plan:
    """What a crew shall do."""

    env_fns: Sequence[Callable[[], Any]]
    """One for every unit."""
    observation_space: Any
    action_space: Any
    reward_space: Any
    shared: bool
    per_worker: int
    context: str
    in_threads: bool = False


class Handle(Protocol):
    """A running worker."""

    sentinel: int

    def kill(self) -> None: ...

    def join(self, timeout: float) -> bool:
        """Whether it has ended."""

    def obituary(self) -> str: ...

    def close(self) -> None:
        """Free what is left of a worker that has ended."""


class ProcessHandle:
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

    def obituary(self) -> str:
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def close(self) -> None:
        with suppress(ValueError):  # It does not end even when killed: leave it to the kernel.
            self._process.close()


@dataclass
class Member:
    """One worker as the parent knows it."""

    units: range
    incarnation: int
    handle: Handle
    commands: int
    lifeline: int
    pickles: int
    reader: PickleReader


class Crew:
    """Starts the workers, carries commands to them and answers back; knows nothing of episodes."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._owner = os.getpid()
        count = len(plan.env_fns)
        starts = range(0, count, plan.per_worker)
        self.block = SharedBlock(self._fields(len(starts)))
        self.block["running"][:] = -1
        self.block["reset_seconds"][:] = np.inf
        self.block["episode_seed"][:] = -1
        self.worker_of = [unit // plan.per_worker for unit in range(count)]
        self._ends = OwnEnds()
        self._answers, self._answers_in = self._ends.pipe(parent_reads=True)
        os.set_blocking(self._answers, False)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._by_sentinel: dict[int, int] = {}
        self._dead: set[int] = set()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self._spin = _SPIN_SECONDS if len(starts) < cores and not plan.in_threads else 0.0
        self._env_fns = self._portable_fns(starts)
        self.members: list[Member] = []
        self.closed = False
        atexit.register(self.shut_down)
        try:
            for w, start in enumerate(starts):
                units = range(start, min(start + plan.per_worker, count))
                self.members.append(self._started(w, units, 0))
        except BaseException:
            self.shut_down()
            raise
        self._whole = [(member, step_commands(member.units)) for member in self.members]
        self._single = [step_commands([unit]) for unit in range(count)]

    def _fields(self, workers: int) -> dict[str, Any]:
        plan, count = self._plan, len(self._plan.env_fns)
        fields: dict[str, Any] = {
            "reward": reward_spec(plan.reward_space, count),
            "flags": ColumnSpec((count,), np.dtype(np.uint8)),
            "may_reset": ColumnSpec((count,), np.dtype(np.uint8)),
            "info": ColumnSpec((count, INFO_BYTES), np.dtype(np.uint8)),
            "info_size": ColumnSpec((count,), np.dtype(np.int32)),
            "episode_seed": ColumnSpec((count,), np.dtype(np.int64)),
            "reset_seconds": ColumnSpec((count, 3), np.dtype(np.float64)),
            "running": ColumnSpec((workers,), np.dtype(np.int32)),
            "started": ColumnSpec((workers,), np.dtype(np.float64)),
        }
        obs = space_specs(plan.observation_space, count) if plan.shared else None
        if obs is not None:
            fields |= {"obs": obs, "first": obs}
        action = space_specs(plan.action_space, count) if plan.shared else None
        if action is not None:
            fields["action"] = action
        return fields

    def _portable_fns(self, starts: range) -> list[Any]:
        """The env factories of every worker, pickled if it is not to be forked."""
        plan = self._plan
        parts = [list(plan.env_fns[start : start + plan.per_worker]) for start in starts]
        if plan.context == "fork" or plan.in_threads:
            return parts
        try:
            return [cloudpickle.dumps(part) for part in parts]
        except Exception as error:
            raise EnvError(
                f"the env factories cannot be sent to a process of context '{plan.context}': "
                f"{error!r}; make them of picklable parts (functools.partial of an env class and "
                "its cfg), or set env.manager.context='fork'"
            ) from error

    def _started(self, w: int, units: range, incarnation: int) -> Member:
        command_in, command_out = self._ends.pipe(parent_reads=False)
        life_in, life_out = self._ends.pipe(parent_reads=False)
        pickle_in, pickle_out = self._ends.pipe(parent_reads=True)
        os.set_blocking(command_out, False)
        setup = WorkerSetup(
            index=w,
            incarnation=incarnation,
            first_unit=units.start,
            env_fns=self._env_fns[w],
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
            handle = self._handle(setup)
        finally:
            for fd in (command_in, life_in, pickle_out):
                os.close(fd)
        self._by_sentinel[handle.sentinel] = w
        self._poll.register(handle.sentinel, select.POLLIN)
        reader = PickleReader(pickle_in)
        return Member(units, incarnation, handle, command_out, life_out, pickle_in, reader)

    def _handle(self, setup: WorkerSetup) -> Handle:
        if self._plan.in_threads:
            from ding.envs.manager.thread import ThreadHandle

            return ThreadHandle(setup)
        return ProcessHandle(setup, self._plan.context)

    def command_all_steps(self) -> list[tuple[Member, bytes]]:
        """The rest that could not be sent at once."""
        return [rest for m, data in self._whole if (rest := self._try_send(m, data)) is not None]

    def command_steps(self, units: Sequence[int]) -> list[tuple[Member, bytes]]:
        if len(units) == 1:
            member = self.members[self.worker_of[units[0]]]
            rest = self._try_send(member, self._single[units[0]])
            return [] if rest is None else [rest]
        if self._plan.per_worker == 1:
            sends = [(self.members[unit], self._single[unit]) for unit in units]
        else:
            by_worker: dict[int, list[int]] = {}
            for unit in units:
                by_worker.setdefault(self.worker_of[unit], []).append(unit)
            sends = [(self.members[w], step_commands(part)) for w, part in by_worker.items()]
        return [rest for m, data in sends if (rest := self._try_send(m, data)) is not None]

    def command(self, unit: int, kind: Command, pickled: bytes = b"") -> tuple[Member, bytes]:
        return self.members[self.worker_of[unit]], command(kind, unit, pickled)

    def _try_send(self, member: Member, data: bytes) -> tuple[Member, bytes] | None:
        sent = self.send_some(member, data)
        return None if sent == len(data) else (member, data[sent:])

    def send_some(self, member: Member, data: bytes | memoryview) -> int:
        """How many bytes the pipe took; all of them if the worker is dead, which is seen later."""
        try:
            return os.write(member.commands, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return len(data)

    def wait(self, timeout: float) -> bool:
        """Wait for an answer or a death; whether one came."""
        if self._spin:
            until = time.perf_counter() + min(self._spin, timeout)
            while time.perf_counter() < until:
                if events := self._poll.poll(0):
                    return self._noted(events)
        return self._noted(self._poll.poll(timeout * 1000))

    def _noted(self, events: list[tuple[int, int]]) -> bool:
        for fd, _ in events:
            if fd != self._answers and fd in self._by_sentinel:
                self._dead.add(self._by_sentinel[fd])
        return bool(events)

    def answers(self) -> bytes:
        """Records that have arrived, maybe none."""
        try:
            return os.read(self._answers, 65536)
        except BlockingIOError:
            return b""

    def dead(self) -> set[int]:
        """Workers that died since the last call."""
        dead, self._dead = self._dead, set()
        return dead

    def look_for_dead(self) -> None:
        """Also where another process inherited the sentinel and keeps it open."""
        for w, member in enumerate(self.members):
            if member.handle.join(0):
                self._dead.add(w)

    def kill(self, w: int) -> str:
        """Make sure that a worker is gone; how it ended."""
        handle = self.members[w].handle
        handle.kill()
        handle.join(_CLOSE_SECONDS)
        return handle.obituary()

    def restart(self, w: int) -> None:
        """A new worker in place of one that is gone."""
        member = self.members[w]
        self._dismiss(member)
        incarnation = (member.incarnation + 1) % 2**16
        self.members[w] = new = self._started(w, member.units, incarnation)
        self._whole = [(new if m is member else m, data) for m, data in self._whole]

    def _dismiss(self, member: Member) -> None:
        self._poll.unregister(member.handle.sentinel)
        self._by_sentinel.pop(member.handle.sentinel)
        member.handle.close()
        self._ends.close(member.commands, member.lifeline, member.pickles)

    def shut_down(self) -> None:
        """Let the workers close their envs, kill those that do not, free everything."""
        if self.closed or os.getpid() != self._owner:
            return
        self.closed = True
        atexit.unregister(self.shut_down)
        for member in self.members:
            self.send_some(member, command(Command.CLOSE, 0))
            # Whoever writes a long answer shall not wait for a reader.
            self._ends.close(member.pickles, member.commands)
        self._await_ends()
        self._ends.close()
        os.close(self._answers_in)
        os.close(self.block.fd.number)

    def _await_ends(self) -> None:
        began = time.monotonic()
        for w, member in enumerate(self.members):
            handle, ended = member.handle, False
            for limit in (_BUSY_SECONDS, _CLOSE_SECONDS):
                ended = ended or handle.join(max(began + limit - time.monotonic(), 0.01))
                if self.block["running"][w] >= 0:
                    break  # It did not even come to closing its envs.
            if not ended:
                handle.kill()
                handle.join(_CLOSE_SECONDS)
            handle.close()
