"""Replay: runs a recorded episode again, up to the failure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ding.envs.base_env import BaseEnv
from ding.envs.manager.columns import ActionRows, ObsColumns, obs_columns, stack_checked
from ding.envs.manager.env_results import checked_step
from ding.envs.manager.faults import deadline
from ding.envs.manager.flight.file import (
    Flight,
    FlightError,
    env_traceback,
    fault_kind,
    is_trusted,
    load_flight,
    shown,
)
from ding.utils.plain import NotPlainError, from_plain

_SECONDS = 60.0


class ReplayStep(NamedTuple):
    step: int
    """0 is the reset, 1 the first action."""
    action: Any
    reward: Any
    done: bool


@dataclass(frozen=True)
class Failure:
    step: int
    kind: str
    error: str
    traceback: str
    exception: BaseException | None = None
    """For a debugger: `pdb.post_mortem(failure.exception.__traceback__)`."""


@dataclass(frozen=True)
class Replay:
    """Steps and failure of a second run of a flight's actions."""

    flight: Flight
    steps: list[ReplayStep]
    failure: Failure | None

    @property
    def same(self) -> bool:
        """Whether it failed at the recorded step with the recorded kind of error."""
        found, flight = self.failure, self.flight
        if found is None or found.step != flight.step:
            return False
        if flight.kind not in (found.kind, "reset"):
            return False
        return found.kind != "raised" or _class_name(found.error) == _class_name(flight.error)


def replay_flight(
    path: str | Path | Flight,
    env_fn: Callable[[], Any] | None = None,
    *,
    timeout: float | None = None,
    trust: bool = False,
) -> Replay:
    """Make the env (with `env_fn`, or as the file says), seed it and take the recorded actions."""
    flight = path if isinstance(path, Flight) else load_flight(path)
    steps: list[ReplayStep] = []
    failure = None
    for event in replay_events(flight, env_fn or env_maker(flight, trust=trust), timeout):
        if isinstance(event, Failure):
            failure = event
        else:
            steps.append(event)
    return Replay(flight, steps, failure)


def replay_events(
    flight: Flight, env_fn: Callable[[], Any], timeout: float | None = None
) -> Iterator[ReplayStep | Failure]:
    """The reset and the steps, one by one; the last event is the failure if there is one."""
    if flight.hindrance:
        raise FlightError(f"this flight cannot be replayed: {flight.hindrance}")
    step = 0
    with ExitStack() as closing:
        try:
            env = env_fn()
            closing.callback(_close, env)
            for event in _episode(env, flight, timeout):
                yield event
                step = event.step + 1
        except Exception as error:  # An env may raise anything; it is what we are here to see.
            yield _failure(step, error)


def _episode(env: Any, flight: Flight, timeout: float | None) -> Iterator[ReplayStep]:
    reset_limit, step_limit = time_limits(flight, timeout)
    columns = _begin(env, flight, reset_limit)
    yield ReplayStep(0, None, None, False)
    split = ActionRows(env.action_space, getattr(env, "python_actions", False))
    for step, batch in enumerate(flight.rows(), start=1):
        action = split(batch, 1)[0]
        with _deadline(step_limit, f"step {step}"):
            given = env.step(action)
        timestep = checked_step(given)
        stack_checked(columns, [timestep.obs])
        yield ReplayStep(step, shown(action), shown(given[1]), timestep.done)
        if timestep.done:
            return


def _begin(env: Any, flight: Flight, seconds: float) -> ObsColumns:
    """Seed and reset the env as it was; the check of its observations."""
    resets = 1
    if flight.episode_seed is not None:
        env.seed(flight.episode_seed, dynamic_seed=False)
    elif flight.seed is not None:
        dynamic = flight.dynamic_seed
        env.seed(flight.seed) if dynamic is None else env.seed(flight.seed, dynamic)
        resets = max(flight.resets, 1)
    for _ in range(resets):
        with _deadline(seconds, "reset"):
            obs = env.reset(**flight.reset_kwargs)
    columns = obs_columns(env.observation_space)
    stack_checked(columns, [obs])
    return columns


def _failure(step: int, error: Exception) -> Failure:
    text = env_traceback(error) or f"{type(error).__name__}: {error}"
    return Failure(step, fault_kind(error), repr(error), text, error)


def time_limits(flight: Flight, timeout: float | None) -> tuple[float, float]:
    """Seconds for a reset and for a step."""
    if timeout is not None:
        return timeout, timeout
    return flight.reset_timeout or _SECONDS, flight.step_timeout or _SECONDS


def _close(env: Any) -> None:
    with suppress(Exception):  # It is broken anyway, and what broke it is the news.
        env.close()


def _deadline(seconds: float, what: str) -> AbstractContextManager[None]:
    # The signal behind it reaches the main thread only.
    in_main = threading.current_thread() is threading.main_thread()
    return deadline(seconds, what) if in_main else nullcontext()


def _class_name(error: str) -> str:
    """The class in texts like `ValueError: no` and `ValueError('no')`."""
    return error.partition(":")[0].partition("(")[0].rpartition(".")[2].strip()


def env_maker(flight: Flight, *, trust: bool = False) -> Callable[[], Any]:
    """Makes the env that the flight describes; without `trust` nothing but our own classes."""
    env = flight.env
    if env is None:
        raise FlightError(
            "the file does not say how to make the env (its maker is a lambda, a local class, or "
            "has arguments that are no plain data): replay it from Python, "
            "ding.envs.replay_flight(path, env_fn)"
        )

    def resolve(name: str) -> Any:
        return _imported(name, trust)

    try:
        call = resolve(env["call"])
        args, kwargs = (from_plain(env[key], resolve) for key in ("args", "kwargs"))
    except (KeyError, TypeError, NotPlainError) as error:
        raise FlightError(f"the flight's description of the env is damaged: {error}") from error
    if not trust:
        _check_harmless(call, [args, kwargs])
    return lambda: call(*args, **kwargs)


def _imported(name: str, trust: bool) -> Any:
    if not (trust or is_trusted(name)):
        raise FlightError(
            f"the flight names '{name}', which is not part of ding: its code would run here. "
            "If you know where the file comes from, add --trust"
        )
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise FlightError(
            f"cannot import '{name}': {error}; run this where the env can be imported"
        ) from error
    return found


def _check_harmless(call: Any, arguments: Any) -> None:
    """No function of ours that is no env, no import or file by way of our own classes."""
    if not (isinstance(call, type) and issubclass(call, BaseEnv)):
        raise FlightError(f"{call!r} is no env class; add --trust if it makes an env")
    for key, value in _items(arguments):
        imports = (key == "env_id" and ":" in str(value)) or (
            key == "env_wrapper" and ":" in "".join(_wrapper_names(value))
        )
        if imports or (key == "replay_path" and value):
            raise FlightError(
                f"the flight's env config has {key}={value!r}, which imports a module or writes "
                "files. If you know where the file comes from, add --trust"
            )


def _wrapper_names(wrappers: Any) -> Iterator[str]:
    for wrapper in wrappers or ():
        yield str(wrapper.get("type", "") if isinstance(wrapper, dict) else wrapper)


def _items(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Keys and values at every depth."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield key, value
        if isinstance(value, (dict, list, tuple)):
            yield from _items(value)
