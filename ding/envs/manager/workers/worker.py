"""The loop of an env worker: a process, or a thread, that steps and resets one or more envs."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from select import PIPE_BUF
from typing import Any

import numpy as np
from gymnasium import spaces
from threadpoolctl import threadpool_limits

from ding.envs.manager.columns import obs_columns, stack_checked
from ding.envs.manager.env_access import close_quietly, look_up
from ding.envs.manager.env_results import checked_step, is_number, is_plain
from ding.envs.manager.faults import Phase, fault_of
from ding.envs.manager.slot import seed_env
from ding.envs.manager.workers.channel import (
    ANSWER,
    HAS_INFO,
    INFO_IN_PIPE,
    Answer,
    Command,
    CommandReader,
    die_with,
    flags_of,
    pickled_info,
    runs,
    write_all,
    write_pickle,
)
from ding.envs.manager.workers.shared_block import (
    INFO_BYTES,
    Fd,
    SharedBlock,
    row_writer,
)
from ding.utils.batch import take, tree_map

# A result that took longer to make than this is announced at once, others wait for company.
_CHEAP_SECONDS = 1e-4
_STEP = int(Command.STEP)


@dataclass(frozen=True)
class EnvSetup:
    """Settings of an env for its coming resets."""

    reset_kwargs: dict[str, Any]
    seed: int | None
    dynamic_seed: bool | None
    replay_path: str | None
    renew: bool = False
    """Close the env that there is: the next reset makes a new one."""


@dataclass(frozen=True)
class WorkerSetup:
    index: int
    incarnation: int
    first_row: int
    env_fns: list[Callable[[], Any]] | bytes
    """Env factories of rows `first_row` and following; pickled unless the process is forked."""
    observation_space: Any
    block: SharedBlock
    commands: Fd
    answers: Fd
    pickles: Fd
    lifeline: Fd
    spin: float
    """Seconds to look for a command before sleeping."""


def work(setup: WorkerSetup) -> None:
    """Run a worker process from its start to its end."""
    die_with(setup.lifeline.number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which closes us.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    with threadpool_limits(1):
        EnvWorker(setup).run()


class EnvWorker:
    """Takes commands in order; resets of ended episodes come when no command waits."""

    def __init__(self, setup: WorkerSetup) -> None:
        self.abandoned = False
        """Set by the parent of a thread that took too long: its results are ignored from then."""
        self._index, self._incarnation = setup.index, setup.incarnation
        fns = setup.env_fns
        self._env_fns = pickle.loads(fns) if isinstance(fns, bytes) else fns
        self._first_row = setup.first_row
        self._answer_fd, self._pickle_fd = setup.answers.number, setup.pickles.number
        self._commands = CommandReader(setup.commands.number)
        self._spin = setup.spin
        self._bind(setup.block, setup.observation_space)
        self._envs: dict[int, Any] = {}
        self._action_of: dict[int, Callable[[int], Any]] = {}
        self._setups: dict[int, EnvSetup] = {}
        self._seeds: dict[int, tuple[int, bool | None]] = {}
        self._to_reset: deque[int] = deque()
        self._unwritten = bytearray()
        self._stored: list[int] = []
        """Rows whose steps are in the block and not announced yet."""

    def _bind(self, block: SharedBlock, space: Any) -> None:
        self._rows = len(block["flags"])
        self._actions = block["action"] if "action" in block.columns else None
        self._columns = obs_columns(space)
        self._write_obs = self._write_first = None
        if "obs" in block.columns:
            self._write_obs = row_writer(space, block["obs"])
            self._write_first = row_writer(space, block["first"])
        self._rewards = block["reward"]
        self._rewards_are_numbers = self._rewards.ndim == 1
        self._flags, self._may_reset = block["flags"], block["may_reset"]
        self._info, self._info_size = block["info"], block["info_size"]
        self._running, self._started = block["running"], block["started"]
        self._episode_seed, self._reset_seconds = block["episode_seed"], block["reset_seconds"]

    def run(self) -> None:
        try:
            while self._serve():
                pass
        except (EOFError, BrokenPipeError):
            pass  # The parent is gone, or has closed its ends.
        finally:
            self._running[self._index] = -1
            with ExitStack() as stack:
                for env in self._envs.values():
                    stack.callback(close_quietly, env)

    def _serve(self) -> bool:
        """Take the commands that were sent, or else do a reset; False after the last one."""
        self._flush()
        self._running[self._index] = -1
        if self._to_reset and not self._commands.is_waiting():
            self._reset(self._to_reset.popleft())
            return not self.abandoned
        if self._spin:
            until = time.perf_counter() + self._spin
            while not self._commands.is_waiting() and time.perf_counter() < until:
                pass
        got = False
        for kind, row, count, pickled in self._commands.read():
            got = True
            if kind == _STEP:
                for one in range(row, row + count):
                    self._step(one)
            elif kind == Command.CLOSE:
                return False
            else:
                _HANDLERS[kind](self, row, pickled)
        return got and not self.abandoned

    def _begin(self, phase: Phase, row: int) -> float:
        """Tell the parent's watchdog what begins here."""
        now = time.monotonic()
        self._started[self._index] = now
        self._running[self._index] = phase * self._rows + row
        return now

    def _step(self, row: int, pickled: bytes = b"") -> None:
        began = self._begin(Phase.STEP, row)
        try:
            action = pickle.loads(pickled) if pickled else self._action_of[row](row)
            timestep = self._envs[row].step(action)
            if self.abandoned:
                return
            done = self._store(row, timestep)
        except (Exception, SystemExit) as error:  # An env may raise anything.
            self._fail(row, Phase.STEP, error)
            return
        if time.monotonic() - began > _CHEAP_SECONDS:
            self._flush()
        if done and self._may_reset[row]:
            self._to_reset.append(row)

    def _action_reader(self, env: Any) -> Callable[[int], Any]:
        """How an env's action is read; never a view, since the env may keep it."""
        actions = self._actions
        if type(actions) is not np.ndarray:
            return lambda row: tree_map(np.copy, take(actions, (row, ...)))
        is_discrete = isinstance(env.action_space, spaces.Discrete)
        if is_discrete and getattr(env, "python_actions", False):
            return actions.item
        return lambda row: actions[row, ...].copy()  # The ellipsis keeps numbers as arrays.

    def _store(self, row: int, timestep: Any) -> bool:
        """Put a step into the shared block and announce it."""
        if not (is_plain(timestep) and is_number(timestep[1]) and self._rewards_are_numbers):
            timestep = checked_step(timestep, self._rewards.shape[1:])
        obs, reward, done, info = timestep
        if self._write_obs is not None:
            self._write_obs(row, obs)
        else:
            stack_checked(self._columns, [obs])
        self._rewards[row] = reward
        done = bool(done)
        if self._write_obs is None:
            self._flags[row] = flags_of(done, info)
            self._send(Answer.STEP_WITH, row, pickle.dumps((obs, pickled_info(info))))
        elif info:
            self._store_info(row, done, info)
        else:
            self._flags[row] = done
            self._stored.append(row)
        return done

    def _store_info(self, row: int, done: bool, info: Any) -> None:
        pickled = pickled_info(info)
        if len(pickled) <= INFO_BYTES:
            self._info[row, : len(pickled)] = np.frombuffer(pickled, dtype=np.uint8)
            self._info_size[row] = len(pickled)
            self._flags[row] = flags_of(done, info) | HAS_INFO
            self._stored.append(row)
        else:
            self._flags[row] = flags_of(done, info) | INFO_IN_PIPE
            self._send(Answer.STEP_WITH, row, pickle.dumps((None, pickled)))

    def _reset(self, row: int, _: bytes = b"") -> None:
        phase = Phase.MAKE
        try:
            env = self._made(row)
            phase = Phase.RESET
            began = self._begin(phase, row)
            self._send_seed(row, env)
            try:
                obs = env.reset(**self._setups[row].reset_kwargs)
            finally:
                seed = getattr(env, "episode_seed", None)
                self._episode_seed[row] = seed if isinstance(seed, int) else -1
            if self.abandoned:
                return
            if self._write_first is not None:
                self._write_first(row, obs)
            else:
                stack_checked(self._columns, [obs])
                pickled = pickle.dumps(obs)
        except (Exception, SystemExit) as error:  # An env may raise anything.
            self._fail(row, phase, error)
            return
        ring = self._reset_seconds[row]
        ring[1:] = ring[:-1].copy()
        ring[0] = time.monotonic() - began
        if self._write_first is not None:
            self._push(Answer.FIRST, row)
            self._flush()
        else:
            self._send(Answer.FIRST_WITH, row, pickled)

    def _made(self, row: int) -> Any:
        if row not in self._envs:
            self._begin(Phase.MAKE, row)
            env = self._env_fns[row - self._first_row]()
            path = self._setups[row].replay_path
            if path is not None:
                env.enable_save_replay(path)
            self._adopt(row, env)
        return self._envs[row]

    def _adopt(self, row: int, env: Any) -> None:
        self._envs[row] = env
        if self._actions is not None:
            self._action_of[row] = self._action_reader(env)

    def _send_seed(self, row: int, env: Any) -> None:
        if row in self._seeds:
            seed_env(env, *self._seeds.pop(row))

    def _prepare(self, row: int, pickled: bytes) -> None:
        setup: EnvSetup = pickle.loads(pickled)
        self._setups[row] = setup
        if setup.renew and row in self._envs:
            self._begin(Phase.MAKE, row)
            close_quietly(self._envs.pop(row))
        if setup.seed is not None:
            self._seeds[row] = (setup.seed, setup.dynamic_seed)

    def _call(self, row: int, pickled: bytes) -> None:
        self._begin(Phase.CALL, row)
        try:
            name, args = pickle.loads(pickled)
            reply = pickle.dumps(self._reply(row, name, args))
        except (Exception, SystemExit) as error:  # An env may raise anything.
            reply = pickle.dumps(fault_of(error, Phase.CALL))
        self._send(Answer.REPLY, row, reply)

    def _reply(self, row: int, name: str, args: tuple[Any, ...]) -> Any:
        if name == "load":
            self._adopt(row, pickle.loads(args[0]))
            return None
        env = self._envs.get(row)
        if env is None:
            raise RuntimeError("the env was not made yet")
        if name == "save":
            return pickle.dumps(env)
        if name == "look":
            return look_up(env, args[0])
        return getattr(env, name)(*args)

    def _push(self, kind: Answer, row: int) -> None:
        self._push_steps()
        self._unwritten += ANSWER.pack(kind, self._incarnation, row, 1)

    def _push_steps(self) -> None:
        """Records of the steps that were stored since the last call."""
        for row, count in runs(self._stored):
            self._unwritten += ANSWER.pack(Answer.STEP, self._incarnation, row, count)
        self._stored.clear()

    def _flush(self) -> None:
        self._push_steps()
        if self._unwritten:
            data, self._unwritten = bytes(self._unwritten), bytearray()
            for start in range(0, 0 if self.abandoned else len(data), PIPE_BUF):
                write_all(self._answer_fd, data[start : start + PIPE_BUF])  # Whole, or not at all.

    def _send(self, kind: Answer, row: int, pickled: bytes) -> None:
        """Announce first: the parent must be reading when a long pickle comes."""
        self._push(kind, row)
        self._running[self._index] = -1
        self._flush()
        if not self.abandoned:
            write_pickle(self._pickle_fd, pickled)

    def _fail(self, row: int, phase: Phase, error: BaseException) -> None:
        if not self.abandoned:
            self._send(Answer.ERROR, row, pickle.dumps(fault_of(error, phase)))


_HANDLERS: dict[int, Callable[[EnvWorker, int, bytes], None]] = {
    Command.STEP_WITH: EnvWorker._step,
    Command.RESET: EnvWorker._reset,
    Command.PREPARE: EnvWorker._prepare,
    Command.CALL: EnvWorker._call,
}
