"""Services as Ray actors, on this machine or on a cluster.

Actors are not restarted by Ray: the coordinator makes another one and knows that it is another.
Values that an actor returned outlive it; that is why services return what is large instead of
putting it somewhere themselves.
"""

from __future__ import annotations

import logging
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from ding.parallel.backend import Call, Factory, ServiceFailedError, ServiceLostError
from ding.utils.errors import DingError

_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # Lost calls are told by `result`; Ray need not tell them too.
    "RAY_DEDUP_LOGS": "0",
    # Misnamed: without it Ray listens on all interfaces, with it on the loopback one alone.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
}


class RayBackend:
    """Starts Ray on this machine, reachable from here alone and only with a token."""

    def __init__(self) -> None:
        if "ray" in sys.modules and os.environ.get("RAY_AUTH_MODE") != "token":
            raise DingError(
                "ray was imported before ding could close it to others; start the run before "
                "anything imports ray, or set RAY_AUTH_MODE=token in the environment"
            )
        # Short: the names of sockets in it must be.
        self._directory = tempfile.mkdtemp(prefix="ding_", dir="/tmp")
        token = Path(self._directory) / "token"
        token.touch(mode=0o600)
        token.write_text(_token())
        os.environ.update(_SETTINGS, RAY_AUTH_TOKEN_PATH=str(token))
        command = [sys.executable, "-m", "ding.parallel.guard", str(os.getpid())]
        self._guard = subprocess.Popen(
            [*command, self._directory], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            import ray
        except ImportError as error:
            self._end_guard()
            raise DingError(
                "parallel runs need Ray; install it with: pip install 'ding-engine[ray]'"
            ) from error
        self._ray = ray
        ray.init(
            address="local",
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _temp_dir=self._directory,
        )

    def spawn(self, name: str, factory: Factory) -> Any:
        # A class of that name: lists of processes then tell who is who.
        host = type(name, (_Host,), {})
        # Without a claim on cores none is ever waited for; the operating system shares them out.
        actor: Any = self._ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0)(host)
        return actor.remote(cloudpickle.dumps(factory))

    def call(self, service: Any, method: str, *args: Any) -> Call:
        large, small = service.call.options(num_returns=2).remote(method, *args)
        return Call(service, method, large, small)

    def wait(self, calls: Sequence[Call], timeout: float) -> list[Call]:
        by_ref = {call.small: call for call in calls}
        if not by_ref:
            time.sleep(timeout)
            return []
        refs = list(by_ref)
        done, _ = self._ray.wait(refs, num_returns=1, timeout=timeout)
        if done and len(refs) > 1:
            done, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        return [by_ref[ref] for ref in done]

    def result(self, call: Call) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(call.small)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, DingError):
                raise cause from None
            raise ServiceFailedError(str(error)) from None
        except errors.RayError as error:
            raise ServiceLostError(f"{call.method}: {error}") from None

    def put(self, value: Any) -> Any:
        return self._ray.put(value)

    def kill(self, service: Any) -> None:
        self._ray.kill(service)

    def close(self) -> None:
        self._ray.shutdown()
        self._end_guard()

    def _end_guard(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(20)


@cache
def _token() -> str:
    """The same for all runs of a process: Ray looks for it once."""
    return secrets.token_hex(32)


class _Host:
    """What an actor is: a service that is made when it is first called, so that errors are told."""

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        self._service: Any = None

    def call(self, method: str, *args: Any) -> tuple[Any, Any]:
        if self._service is None:
            self._service = cloudpickle.loads(self._pickled)()
        return getattr(self._service, method)(*args)
