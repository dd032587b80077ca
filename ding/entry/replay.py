"""`ding -m replay`: an episode that broke, once more and up to the failure."""

from __future__ import annotations

import dataclasses
import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ding.envs.manager.flight.file import Flight, FlightError, load_flight, versions
from ding.envs.manager.flight.replay import (
    Failure,
    Replay,
    ReplayStep,
    env_maker,
    replay_events,
    time_limits,
)

_SHOWN_STEPS = 8
_GRACE = 5.0
"""Seconds beyond the limit of a call after which the process that makes it is killed."""


def replay(
    path: str | Path,
    say: Callable[[str], None],
    *,
    timeout: float | None = None,
    trust: bool = False,
) -> int:
    """Replay a flight file and tell; the exit code is 0 if it failed as recorded, else 3."""
    if trust and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # The env may be a module here; a script does not look.
    flight = load_flight(path)
    if flight.hindrance:
        raise FlightError(f"'{path}' cannot be replayed: {flight.hindrance}")
    maker = env_maker(flight, trust=trust)
    _introduce(flight, say)
    run = _isolated if _may_take_us_along(flight) else replay_events
    found = _watched(flight, run(flight, maker, timeout))
    for step, action, reward, done in found.steps:
        say(f"step {step}: action {action}, reward {reward}, done {done}" if step else "reset")
    say(_verdict(found))
    return 0 if found.same else 3


def _introduce(flight: Flight, say: Callable[[str], None]) -> None:
    name = flight.env["call"] if flight.env else "?"
    say(f"env {flight.env_id} ({name}) on {flight.time}: {flight.kind}, {flight.error}")
    say(f"seed {flight.seed}, episode seed {flight.episode_seed}, episode step {flight.step}")
    here = versions()
    for package, version in flight.versions.items():
        if version != here.get(package):
            say(f"note: recorded with {package} {version}, here is {here.get(package)}")


def _watched(flight: Flight, events: Iterator[ReplayStep | Failure]) -> Replay:
    last: deque[ReplayStep] = deque(maxlen=_SHOWN_STEPS)
    for event in events:
        if isinstance(event, Failure):
            return Replay(flight, list(last), event)
        last.append(event)
    return Replay(flight, list(last), None)


def _verdict(found: Replay) -> str:
    failure, flight = found.failure, found.flight
    if failure is None:
        return f"did not fail: {_why_not(found)}"
    where = f"step {failure.step}" if failure.step else "the reset"
    details = failure.traceback.rstrip() or failure.error
    if found.same:
        return f"raised the same error at {where}:\n{details}"
    return (
        f"did not fail in the same way: {failure.kind} at {where}, but recorded was {flight.kind} "
        f"at step {flight.step} ({flight.error}):\n{details}"
    )


def _why_not(found: Replay) -> str:
    flight, taken = found.flight, found.steps[-1].step
    if found.steps[-1].done:
        text = f"the episode ended at step {taken}, recorded was a failure at step {flight.step}"
    else:
        text = f"the reset and {taken} steps went well"
    if flight.episode_seed is None:
        text += "; the env does not tell the seed of its episodes, so this may be another one"
    return text


def _may_take_us_along(flight: Flight) -> bool:
    """Deaths end the process they happen in, and some hangs no signal can cut."""
    return flight.kind in ("died", "timeout") or "Timeout" in flight.error or "died" in flight.error


def _isolated(
    flight: Flight, maker: Callable[[], Any], timeout: float | None
) -> Iterator[ReplayStep | Failure]:
    """The events of a replay in a process of its own, also if it dies or must be killed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_events, args=(sender, flight, maker, timeout), daemon=True)
    child.start()
    sender.close()
    step = 0
    resets, seconds = max(flight.resets, 1), time_limits(flight, timeout)
    patience = resets * seconds[0] + _GRACE
    with closing(receiver):
        try:
            while receiver.poll(patience):
                event = receiver.recv()
                if event is None:
                    return
                yield event
                step, patience = step + 1, seconds[1] + _GRACE
            yield Failure(step, "timeout", "it hangs and no signal can cut it", "")
        except EOFError:
            child.join()
            yield Failure(step, "died", _death(child.exitcode or 0), "")
        finally:
            child.kill()
            child.join()


def _send_events(
    sender: Connection, flight: Flight, maker: Callable[[], Any], timeout: float | None
) -> None:
    for event in replay_events(flight, maker, timeout):
        if isinstance(event, Failure):
            event = dataclasses.replace(event, exception=None)  # Not all can be pickled.
        sender.send(event)
    sender.send(None)


def _death(code: int) -> str:
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"the process died: {how}"
