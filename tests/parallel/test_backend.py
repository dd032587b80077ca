"""Services in threads and as Ray actors behave alike."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

from ding.parallel.backend import (
    Backend,
    Call,
    InlineBackend,
    ServiceFailedError,
    ServiceLostError,
    ThreadBackend,
)
from ding.utils.errors import ConfigError


class Adder:
    def __init__(self, start: int, error: Exception | None = None) -> None:
        if error is not None:
            raise error
        self._sum = np.full(1000, start)

    def add(self, more: Any) -> tuple[np.ndarray, int]:
        self._sum = self._sum + more
        return self._sum, int(self._sum[0])

    def fail(self, error: Exception) -> None:
        raise error

    def sleep(self, seconds: float) -> tuple[None, None]:
        time.sleep(seconds)
        return None, None

    def wait_for(self, gate: Path) -> tuple[None, None]:
        while not gate.exists():
            time.sleep(0.01)
        return None, None

    def pid(self) -> tuple[None, int]:
        return None, os.getpid()


@pytest.fixture(scope="module")
def ray_backend() -> Iterator[Backend]:
    if find_spec("ray") is None:
        pytest.skip("needs Ray")
    from ding.parallel.ray_backend import RayBackend

    # Actors can't import what pytest has imported its own way.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    backend = RayBackend.here()
    yield backend
    backend.close()


@pytest.fixture(params=["threads", "ray"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    if request.param == "ray":
        yield request.getfixturevalue("ray_backend")
        return
    threads = ThreadBackend()
    yield threads
    threads.close()


def done(backend: Backend, call: Call) -> Any:
    assert backend.wait([call], 60) == [call]
    return backend.result(call)


def test_large_parts_are_handed_on(backend: Backend) -> None:
    one, other = (backend.spawn(f"adder{i}", partial(Adder, 10 * i)) for i in range(2))
    first = backend.call(one, "add", 1)
    assert done(backend, first) == 1
    second = backend.call(other, "add", first.large)
    assert done(backend, second) == 11
    shared = backend.held(second)
    third = [backend.call(one, "add", shared), backend.call(other, "add", shared)]
    assert [done(backend, call) for call in third] == [12, 22]
    backend.kill(one)
    assert done(backend, backend.call(other, "add", second.large)) == 33


def test_waiting_tells_who_is_ready(backend: Backend, tmp_path: Path) -> None:
    slow, quick = (backend.spawn(name, partial(Adder, 0)) for name in ("slow", "quick"))
    done(backend, backend.call(slow, "add", 0))
    gate = tmp_path / "gate"
    waiting, adding = backend.call(slow, "wait_for", gate), backend.call(quick, "add", 1)
    assert backend.wait([waiting, adding], 60) == [adding]
    assert backend.wait([waiting], 0.01) == []
    gate.touch()
    assert backend.wait([waiting], 60) == [waiting]
    assert backend.wait([], 0.0) == []


def test_errors_are_told_and_survived(backend: Backend) -> None:
    service = backend.spawn("adder", partial(Adder, 0))
    with pytest.raises(ServiceFailedError, match="broken"):
        done(backend, backend.call(service, "fail", ValueError("broken")))
    # Errors of ours say by themselves what to do.
    with pytest.raises(ConfigError, match="set it to 1"):
        done(backend, backend.call(service, "fail", ConfigError("set it to 1")))
    assert done(backend, backend.call(service, "add", 1)) == 1
    unmade = backend.spawn("adder", partial(Adder, 0, ConfigError("no such env")))
    for _ in range(2):
        with pytest.raises(ConfigError, match="no such env"):
            done(backend, backend.call(unmade, "add", 1))


def test_what_is_killed_is_lost(backend: Backend) -> None:
    service = backend.spawn("adder", partial(Adder, 0))
    done(backend, backend.call(service, "add", 1))
    call = backend.call(service, "sleep", 60.0)
    backend.kill(service)
    for lost in (call, backend.call(service, "add", 1)):
        with pytest.raises(ServiceLostError):
            done(backend, lost)


def test_inline_calls_are_carried_out_at_once() -> None:
    backend = InlineBackend()
    one, other = (backend.spawn(f"adder{i}", partial(Adder, 10 * i)) for i in range(2))
    first = backend.call(one, "add", 1)
    second = backend.call(other, "add", first.large)
    assert [done(backend, call) for call in (first, second)] == [1, 11]
    with pytest.raises(ValueError, match="broken"):
        backend.call(one, "fail", ValueError("broken"))


def test_processes_that_were_started_early_are_used(ray_backend: Any) -> None:
    ray_backend.prepare(["early"])
    while not ray_backend.is_prepared:
        time.sleep(0.05)
    early, late = (ray_backend.spawn(name, partial(Adder, 5)) for name in ("early", "late"))
    assert [done(ray_backend, ray_backend.call(s, "add", 1)) for s in (early, late)] == [6, 6]
    assert not ray_backend._prepared


def test_actors_listen_on_the_loopback_interface_alone(ray_backend: Backend) -> None:
    import psutil

    done(ray_backend, ray_backend.call(ray_backend.spawn("adder", partial(Adder, 0)), "add", 1))
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    sockets: list[Any] = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            sockets += [c for c in process.net_connections("inet") if c.status == "LISTEN"]
    assert sockets
    assert {c.laddr.ip for c in sockets} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_the_token_is_for_nobody_else(ray_backend: Backend) -> None:
    token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
    assert token.stat().st_mode & 0o777 == 0o600
