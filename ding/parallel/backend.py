"""Backends: places where the services of a parallel run live; here, threads of this process.

A service is an object whose methods return `(large, small)`. The caller reads the small part; the
large one stays where it is and is handed on to other services unread, as an argument of a call.
A call may be asked for by name at any time; a service answers one after the other.
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ding.utils.errors import DingError

Factory = Callable[[], Any]


class ServiceLostError(DingError):
    """The service is gone, and its answer with it."""


class AnswerLostError(ServiceLostError):
    """The service lives, but what it was asked about is gone with the machine where it was."""


class ServiceFailedError(DingError):
    """The service raised; it lives on, unless that was while it was made."""


@dataclass(eq=False)
class Call:
    """One call under way, or over."""

    service: Any
    method: str
    large: Any
    """What other calls take as an argument once this one is over."""
    small: Any
    began: float = field(default_factory=time.monotonic)


def ignore(call: Call, told: Any) -> None:
    """What to do with an answer that says nothing new."""


@dataclass(frozen=True)
class Order:
    """What somebody outside wants of a run: 'add', 'delete' or 'restart' workers of a role."""

    what: str
    role: str
    number: int = 1
    name: str | None = None
    """Of the one to restart; all of the role otherwise."""

    @property
    def words(self) -> str:
        if self.what == "restart":
            return f"restart {self.name or f'every {self.role}'}"
        return f"{self.what} {self.number} {self.role}{'s' * (self.number > 1)}"


class Backend(ABC):
    """Where services are put and called; as it stands, a place with room for all of them."""

    in_threads = False
    """Whether services share this process."""
    dashboard: str | None = None
    """Address of pages that show the services, if there are any."""

    @abstractmethod
    def spawn(self, name: str, factory: Factory, role: str = "") -> Any:
        """A service that `factory` makes where it is to live; calls may be sent at once."""

    @abstractmethod
    def call(self, service: Any, method: str, *args: Any) -> Call: ...

    @abstractmethod
    def wait(self, calls: Sequence[Call], timeout: float) -> list[Call]:
        """Those that are over; waits until one is, for `timeout` seconds at most."""

    @abstractmethod
    def result(self, call: Call) -> Any:
        """The small answer of a call that is over; raises if there is none."""

    def held(self, call: Call) -> Any:
        """The large answer of a call that is over, where it outlives what made it."""
        return call.large

    def room(self, role: str) -> int | None:
        """How many services of a role there is room for now; None: for as many as wanted."""
        return None

    def orders(self) -> list[Order]:
        """Those that have come in since the last look."""
        return []

    @abstractmethod
    def kill(self, service: Any) -> None:
        """End it now; what it has not answered is lost."""

    @abstractmethod
    def close(self) -> None:
        """End all services."""


class ThreadBackend(Backend):
    """Every service in a thread of its own, for tests and for runs without a cluster."""

    in_threads = True

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._services: list[Any] = []

    def spawn(self, name: str, factory: Factory, role: str = "") -> Any:
        service = _ThreadService(name, factory, self._changed)
        self._services.append(service)
        service.start()
        return service

    def call(self, service: Any, method: str, *args: Any) -> Call:
        call = Call(service, method, _Box(), _Box())
        service.take(call, args)
        return call

    def wait(self, calls: Sequence[Call], timeout: float) -> list[Call]:
        with self._changed:
            self._changed.wait_for(lambda: any(call.small.done for call in calls), timeout)
            return [call for call in calls if call.small.done]

    def result(self, call: Call) -> Any:
        if call.small.error is not None:
            raise call.small.error
        return call.small.value

    def kill(self, service: Any) -> None:
        service.die()

    def close(self) -> None:
        for service in self._services:
            service.die()
        for service in self._services:
            service.join(10)


class InlineBackend(ThreadBackend):
    """Every call is carried out at once, by whoever asks: what a serial run does, with services."""

    def spawn(self, name: str, factory: Factory, role: str = "") -> Any:
        service = _InlineService(name, factory)
        self._services.append(service)
        return service

    def wait(self, calls: Sequence[Call], timeout: float) -> list[Call]:
        if not calls:
            time.sleep(0.001)  # Something else is waited for, in the background.
        return list(calls)


@dataclass(eq=False)
class _Box:
    value: Any = None
    error: DingError | None = None
    done: bool = False


class _ThreadService(threading.Thread):
    def __init__(self, name: str, factory: Factory, changed: threading.Condition) -> None:
        super().__init__(name=name, daemon=True)
        self._factory, self._changed = factory, changed
        self._queue: queue.SimpleQueue[tuple[Call, tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._open: set[Call] = set()
        self._dead = False

    def take(self, call: Call, args: tuple[Any, ...]) -> None:
        with self._changed:
            if self._dead:
                self._lose(call)
                return
            self._open.add(call)
        self._queue.put((call, args))

    def die(self) -> None:
        """What it works on now runs to its end, but nobody hears of it: as behind a cut cable."""
        with self._changed:
            self._dead = True
            for call in self._open:
                self._lose(call)
            self._open.clear()
            self._changed.notify_all()
        self._queue.put(None)

    def _lose(self, call: Call) -> None:
        call.small.error, call.small.done = ServiceLostError(f"{self.name} is gone"), True

    def run(self) -> None:
        service: Any = None
        error: DingError | None = None
        try:
            service = self._factory()
        except Exception as raised:
            error = _told(self.name, "making it", raised)
        while (item := self._queue.get()) is not None and not self._dead:
            self._answer(service, error, *item)
        if hasattr(service, "close"):
            service.close()

    def _answer(
        self, service: Any, error: DingError | None, call: Call, args: tuple[Any, ...]
    ) -> None:
        large = small = None
        if error is None:
            try:
                given = [arg.value if isinstance(arg, _Box) else arg for arg in args]
                large, small = getattr(service, call.method)(*given)
            except Exception as raised:
                error = _told(self.name, call.method, raised)
        with self._changed:
            if self._dead:
                return
            self._open.discard(call)
            call.large.value = large
            call.small.value, call.small.error, call.small.done = small, error, True
            self._changed.notify_all()


class _InlineService:
    def __init__(self, name: str, factory: Factory) -> None:
        self.name, self._factory = name, factory
        self._service: Any = None

    def take(self, call: Call, args: tuple[Any, ...]) -> None:
        if self._service is None:
            self._service = self._factory()
        given = [arg.value if isinstance(arg, _Box) else arg for arg in args]
        call.large.value, call.small.value = getattr(self._service, call.method)(*given)
        call.small.done = True

    def die(self) -> None:
        if self._service is not None:
            self._service.close()
            self._service = None

    def join(self, timeout: float) -> None:
        """It has no thread to wait for."""


def _told(name: str, what: str, error: Exception) -> DingError:
    if isinstance(error, DingError):
        return error  # It says by itself what to do.
    text = "".join(traceback.format_exception(error)).rstrip()
    return ServiceFailedError(f"{name}, {what}: {error!r}\n{text}")
