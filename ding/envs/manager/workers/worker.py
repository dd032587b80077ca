"""The loop of an env worker: a process, or a thread, that steps and resets one or more envs."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from select import PIPE_BUF
from typing import Any

import numpy as np
from gymnasium import spaces
from threadpoolctl import threadpool_limits

from ding.envs.base_env import not_a_timestep
from ding.envs.manager.columns import obs_columns, stack_checked
from ding.envs.manager.workers.channel import (
    ANSWER,
    HAS_INFO,
    INFO_IN_PIPE,
    Answer,
    Command,
    CommandReader,
    Phase,
    die_with,
    fault_of,
    flags_of,
    pickled_info,
    write_all,
    write_pickle,
)
from ding.envs.manager.workers.shared import Fd, RewardWriter, SharedBlock, row_writer
from ding.utils.batch import take, tree_map

# A result that took longer to make than this is announced at once, others wait for company.
_CHEAP_SECONDS = 1e-4
INFO_BYTES = 512
_STEP = int(Command.STEP)
METHOD, VALUE, MISSING = "method", "value", "missing"


@dataclass(frozen=True)
class EnvSetup:
    """What a unit needs at its next reset."""

    reset_kwargs: dict[str, Any]
    seed: int | None
    dynamic_seed: bool | None
    replay_path: str | None


@dataclass(frozen=True)
class WorkerSetup:
    index: int
    incarnation: int
    first_unit: int
    env_fns: list[Callable[[], Any]] | bytes
    """Of units `first_unit` and following; pickled for a process that is not forked."""
    observation_space: Any
    block: SharedBlock
    commands: Fd
    answers: Fd
    pickles: Fd
    lifeline: Fd
    spin: float
    """Seconds to look for a command before sleeping."""


def work(setup: WorkerSetup) -> None:
    """What a worker process does from its start to its end."""
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
        """Set by the parent of a thread that took too long: what it still does is void."""
        self._index, self._incarnation = setup.index, setup.incarnation
        fns = setup.env_fns
        self._env_fns = pickle.loads(fns) if isinstance(fns, bytes) else fns
        self._first_unit = setup.first_unit
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
        self._run_start = self._run_end = 0

    def _bind(self, block: SharedBlock, space: Any) -> None:
        self._units = len(block["flags"])
        self._actions = block["action"] if "action" in block.columns else None
        self._columns = obs_columns(space)
        self._write_obs = self._write_first = None
        if "obs" in block.columns:
            self._write_obs = row_writer(space, block["obs"])
            self._write_first = row_writer(space, block["first"])
        self._rewards = block["reward"]
        self._write_reward = RewardWriter(self._rewards)
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
                    stack.callback(_close_quietly, env)

    def _serve(self) -> bool:
        """Take the commands that were sent, or do a reset meanwhile; False when it is over."""
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
        for kind, unit, count, pickled in self._commands.read():
            got = True
            if kind == _STEP:
                for one in range(unit, unit + count):
                    self._step(one)
            elif kind == Command.CLOSE:
                return False
            else:
                _HANDLERS[kind](self, unit, pickled)
        return got and not self.abandoned

    def _begin(self, phase: Phase, unit: int) -> float:
        """Tell the parent's watchdog what begins here."""
        now = time.monotonic()
        self._started[self._index] = now
        self._running[self._index] = phase * self._units + unit
        return now

    def _step(self, unit: int, pickled: bytes = b"") -> None:
        began = self._begin(Phase.STEP, unit)
        try:
            action = pickle.loads(pickled) if pickled else self._action_of[unit](unit)
            timestep = self._envs[unit].step(action)
            if self.abandoned:
                return
            done = self._store(unit, timestep)
        except (Exception, SystemExit) as error:  # An env may raise anything.
            self._fail(unit, Phase.STEP, error)
            return
        if time.monotonic() - began > _CHEAP_SECONDS:
            self._flush()
        if done and self._may_reset[unit]:
            self._to_reset.append(unit)

    def _action_reader(self, env: Any) -> Callable[[int], Any]:
        """How an env's action is read; never a view, since the env may keep it."""
        actions = self._actions
        if type(actions) is not np.ndarray:
            return lambda unit: tree_map(np.copy, take(actions, (unit, ...)))
        is_discrete = isinstance(env.action_space, spaces.Discrete)
        if is_discrete and getattr(env, "python_actions", False):
            return actions.item
        return lambda unit: actions[unit, ...].copy()  # The ellipsis keeps numbers as arrays.

    def _store(self, unit: int, timestep: Any) -> bool:
        """Put a step into the shared block and announce it."""
        if not isinstance(timestep, tuple) or len(timestep) != 4:
            raise not_a_timestep(timestep)
        obs, reward, done, info = timestep
        if self._write_obs is not None:
            self._write_obs(unit, obs)
        else:
            stack_checked(self._columns, [obs])
        if type(reward) is float and reward == reward:
            self._rewards[unit] = reward
        else:
            self._write_reward(unit, reward)
        done = bool(done)
        if self._write_obs is None:
            self._flags[unit] = flags_of(done, info)
            self._send(Answer.STEP_WITH, unit, pickle.dumps((obs, pickled_info(info or {}))))
        elif info:
            self._store_info(unit, done, info)
        else:
            self._flags[unit] = done
            self._announce(unit)
        return done

    def _store_info(self, unit: int, done: bool, info: Any) -> None:
        pickled = pickled_info(info)
        if len(pickled) <= INFO_BYTES:
            self._info[unit, : len(pickled)] = np.frombuffer(pickled, dtype=np.uint8)
            self._info_size[unit] = len(pickled)
            self._flags[unit] = flags_of(done, info) | HAS_INFO
            self._announce(unit)
        else:
            self._flags[unit] = flags_of(done, info) | INFO_IN_PIPE
            self._send(Answer.STEP_WITH, unit, pickle.dumps((None, pickled)))

    def _reset(self, unit: int, _: bytes = b"") -> None:
        phase = Phase.MAKE
        try:
            env = self._made(unit)
            phase = Phase.RESET
            began = self._begin(phase, unit)
            self._send_seed(unit, env)
            try:
                obs = env.reset(**self._setups[unit].reset_kwargs)
            finally:
                seed = getattr(env, "episode_seed", None)
                self._episode_seed[unit] = seed if isinstance(seed, int) else -1
            if self.abandoned:
                return
            if self._write_first is not None:
                self._write_first(unit, obs)
            else:
                stack_checked(self._columns, [obs])
                pickled = pickle.dumps(obs)
        except (Exception, SystemExit) as error:  # An env may raise anything.
            self._fail(unit, phase, error)
            return
        ring = self._reset_seconds[unit]
        ring[1:] = ring[:-1].copy()
        ring[0] = time.monotonic() - began
        if self._write_first is not None:
            self._push(Answer.FIRST, unit, 1)
            self._flush()
        else:
            self._send(Answer.FIRST_WITH, unit, pickled)

    def _made(self, unit: int) -> Any:
        if unit not in self._envs:
            self._begin(Phase.MAKE, unit)
            env = self._env_fns[unit - self._first_unit]()
            path = self._setups[unit].replay_path
            if path is not None:
                env.enable_save_replay(path)
            self._adopt(unit, env)
        return self._envs[unit]

    def _adopt(self, unit: int, env: Any) -> None:
        self._envs[unit] = env
        if self._actions is not None:
            self._action_of[unit] = self._action_reader(env)

    def _send_seed(self, unit: int, env: Any) -> None:
        if unit not in self._seeds:
            return
        seed, dynamic = self._seeds.pop(unit)
        env.seed(seed) if dynamic is None else env.seed(seed, dynamic)
        if hasattr(env.action_space, "seed"):
            env.action_space.seed(seed)

    def _renew(self, unit: int, _: bytes = b"") -> None:
        env = self._envs.pop(unit, None)
        if env is not None:
            self._begin(Phase.MAKE, unit)
            _close_quietly(env)

    def _prepare(self, unit: int, pickled: bytes) -> None:
        setup: EnvSetup = pickle.loads(pickled)
        self._setups[unit] = setup
        if setup.seed is not None:
            self._seeds[unit] = (setup.seed, setup.dynamic_seed)

    def _call(self, unit: int, pickled: bytes) -> None:
        self._begin(Phase.CALL, unit)
        try:
            name, args = pickle.loads(pickled)
            reply = pickle.dumps(self._reply(unit, name, args))
        except (Exception, SystemExit) as error:  # An env may raise anything.
            reply = pickle.dumps(fault_of(error, Phase.CALL))
        self._send(Answer.REPLY, unit, reply)

    def _reply(self, unit: int, name: str, args: tuple[Any, ...]) -> Any:
        if name == "load":
            self._adopt(unit, pickle.loads(args[0]))
            return None
        env = self._envs.get(unit)
        if env is None:
            raise RuntimeError("the env was not made yet")
        if name == "save":
            return pickle.dumps(env)
        if name == "look":
            return _looked_up(env, args[0])
        return getattr(env, name)(*args)

    def _announce(self, unit: int) -> None:
        """A step is ready; those of consecutive units become one record."""
        if unit != self._run_end:
            self._end_run()
            self._run_start = unit
        self._run_end = unit + 1

    def _end_run(self) -> None:
        if self._run_end > self._run_start:
            start, count = self._run_start, self._run_end - self._run_start
            self._run_start = self._run_end = 0
            self._push(Answer.STEP, start, count)
        self._run_start = self._run_end = 0

    def _push(self, kind: Answer, unit: int, count: int) -> None:
        if kind != Answer.STEP:
            self._end_run()
        self._unwritten += ANSWER.pack(kind, self._incarnation, unit, count)

    def _flush(self) -> None:
        self._end_run()
        if self._unwritten:
            data, self._unwritten = bytes(self._unwritten), bytearray()
            for start in range(0, 0 if self.abandoned else len(data), PIPE_BUF):
                write_all(self._answer_fd, data[start : start + PIPE_BUF])  # Whole, or not at all.

    def _send(self, kind: Answer, unit: int, pickled: bytes) -> None:
        """Announce first: the parent must be reading when a long pickle comes."""
        self._push(kind, unit, 1)
        self._running[self._index] = -1
        self._flush()
        if not self.abandoned:
            write_pickle(self._pickle_fd, pickled)

    def _fail(self, unit: int, phase: Phase, error: BaseException) -> None:
        if not self.abandoned:
            self._send(Answer.ERROR, unit, pickle.dumps(fault_of(error, phase)))


_HANDLERS: dict[int, Callable[[EnvWorker, int, bytes], None]] = {
    Command.STEP_WITH: EnvWorker._step,
    Command.RESET: EnvWorker._reset,
    Command.RENEW: EnvWorker._renew,
    Command.PREPARE: EnvWorker._prepare,
    Command.CALL: EnvWorker._call,
}


def _looked_up(env: Any, name: str) -> tuple[str, Any]:
    if not hasattr(env, name):
        return MISSING, repr(env)
    value = getattr(env, name)
    return (METHOD, None) if callable(value) and hasattr(value, "__self__") else (VALUE, value)


def _close_quietly(env: Any) -> None:
    with suppress(Exception):  # A broken env need not close well.
        env.close()
