"""Ray on this machine or joined from it: closed to others, and gone when its run is.

Every setting is in the environment before Ray is imported for the first time: it looks once.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ding.utils.errors import DingError

LOOPBACK = "127.0.0.1"
_DASHBOARD = f"{LOOPBACK}:8265"
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Lost calls are told by `result`; Ray need not tell them too.
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    "RAY_DEDUP_LOGS": "0",
    "RAY_AUTH_MODE": "token",
    # Workers as urgent as this process; Ray would have them wait for everything else.
    "RAY_worker_niceness": "0",
    # A busy machine takes its time to start; a minute is no reason to give up.
    "RAY_agent_register_timeout_ms": "120000",
    # A machine that is gone is noticed within seconds.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "5",
}
# Misnamed: with "0" Ray keeps to the loopback interface, otherwise it listens on all of them.
_ON_ALL_INTERFACES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
START_SECONDS = 120.0
"""Limit for the start of a node: busy machines take minutes."""


def close_to_others(token: Path, *, loopback: bool) -> None:
    """Have all of Ray that starts here ask for the token, and keep to this machine if wished."""
    if "ray" in sys.modules and os.environ.get("RAY_AUTH_MODE") != "token":
        raise DingError(
            "ray was imported before ding could close it to others; start the run before "
            "anything imports ray, or set RAY_AUTH_MODE=token in the environment"
        )
    os.environ.update(_SETTINGS, RAY_AUTH_TOKEN_PATH=str(token))
    if loopback:
        os.environ[_ON_ALL_INTERFACES] = "0"


def write_token(path: Path, token: str | None = None) -> None:
    """A file for its owner's eyes alone."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token or secrets.token_hex(32))


@cache
def token_of_process() -> str:
    """The same for all runs of a process: Ray looks for it once."""
    return secrets.token_hex(32)


def new_directory() -> Path:
    """With a short name: those of sockets in it must be."""
    return Path(tempfile.mkdtemp(prefix="ding_", dir="/tmp"))


class NotStartedError(DingError):
    """A node of Ray ended, or did not answer, before anybody was connected to it."""


class Guard:
    """A process that ends what Ray has started in `directory`, however this one ends."""

    def __init__(self, directory: Path) -> None:
        command = [sys.executable, "-m", "ding.parallel.guard", str(os.getpid()), str(directory)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def end(self) -> None:
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(20)


class Node:
    """A machine's part of a Ray cluster, the head or one that joins; ends with this process."""

    def __init__(
        self,
        address: str,
        *,
        head: bool,
        offers: Mapping[str, int],
        directory: Path | None = None,
        dashboard: bool = False,
    ) -> None:
        """`offers`: how many services of which role may be put here.

        `dashboard`: have the head show Ray's own pages, here alone.
        """
        self.address, self._is_head = address, head
        self.dashboard = f"http://{_DASHBOARD}" if dashboard else None
        host, port = address.rsplit(":", 1)
        resources = json.dumps({f"ding_{role}": n for role, n in offers.items()})
        where = (
            ["--head", f"--port={port}", *dashboard_options(dashboard)]
            if head
            else [f"--address={address}"]
        )
        self._directory = directory or new_directory()
        self._guard = Guard(self._directory)
        # A directory of its own: nodes that start at once on one machine would share sockets.
        where += [f"--temp-dir={self._directory}", "--dashboard-agent-listen-port=0"]
        env = dict(os.environ)
        env.pop(_ON_ALL_INTERFACES, None)  # Ray would let nobody join; see `ding.parallel.node`.
        start = ["start", *where, "--num-cpus=0", "--block"]
        command = [sys.executable, "-m", "ding.parallel.node", str(self._directory), host, *start]
        with (self._directory / "out").open("w") as out:
            self._process = subprocess.Popen(
                [*command, f"--resources={resources}"],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for this process, which then ends the node in order.
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_up(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Of a head: until others can join, or until `stop` says so."""
        until = time.monotonic() + START_SECONDS
        while not answers(self.address) and not stop():
            if not self.is_alive or time.monotonic() > until:
                told = self.last_words
                self.stop()
                raise NotStartedError(f"Ray's head at {self.address} did not start:\n{told}")
            time.sleep(0.1)

    @property
    def last_words(self) -> str:
        return (self._directory / "out").read_text()[-2000:]

    def stop(self) -> None:
        if not self._is_head:  # The head should hear of it; with the head all of it ends.
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
        self._guard.end()
        self._process.wait(10)


def dashboard_options(dashboard: bool) -> list[str]:
    if not dashboard:
        return ["--include-dashboard=false"]
    if find_spec("aiohttp") is None:
        raise DingError(
            "system_config.coordinator.dashboard = True needs more of Ray; install it with: "
            "pip install 'ray[default]'"
        )
    host, port = _DASHBOARD.rsplit(":", 1)
    return ["--include-dashboard=true", f"--dashboard-host={host}", f"--dashboard-port={port}"]


def start_here(dashboard: bool = False) -> Node:
    """Ray for a run on this machine alone; its address is not up yet."""
    directory = new_directory()
    token = directory / "token"
    write_token(token, token_of_process())
    close_to_others(token, loopback=True)
    return Node(
        f"{LOOPBACK}:{free_port()}", head=True, offers={}, directory=directory, dashboard=dashboard
    )


def answers(address: str) -> bool:
    """Whether somebody listens there."""
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


def wait_for(address: str, seconds: float, stop: Callable[[], bool]) -> bool:
    """Until somebody listens there; False if nobody did in time, or if it is to stop."""
    until = time.monotonic() + seconds
    while not stop() and time.monotonic() < until:
        if answers(address):
            return True
        time.sleep(0.3)
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
