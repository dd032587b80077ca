"""Starting Ray on a machine that is too busy to answer at once; no Ray runs here."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from ding.parallel import node as node_module
from ding.parallel import ray_backend
from ding.parallel.cluster import NotStartedError
from ding.parallel.ray_backend import RayBackend
from ding.utils.errors import DingError

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
ADDRESS = "127.0.0.1:1"


class Head:
    """Stands in for the process of a head."""

    address, dashboard, last_words = ADDRESS, None, "the last words"

    def __init__(self, is_up: bool = True, is_alive: bool = True) -> None:
        self.is_up, self.is_alive, self.stopped = is_up, is_alive, 0

    def wait_until_up(self, stop: Any) -> None:
        if not self.is_up:
            self.stop()
            raise NotStartedError("it did not start")

    def stop(self) -> None:
        self.stopped += 1


class Rays:
    """Stands in for Ray: its first connections are refused."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refusals: int) -> None:
        self.refusals, self.tried = refusals, 0
        monkeypatch.setattr("ray.init", self.init)
        monkeypatch.setattr("ray.shutdown", lambda: None)

    def init(self, *_: Any, **__: Any) -> None:
        self.tried += 1
        if self.tried <= self.refusals:
            cause = RuntimeError("No node info found matching attributes: ''")
            raise ConnectionError(f"Failed to connect to Ray cluster at {ADDRESS}") from cause


def heads(monkeypatch: pytest.MonkeyPatch, *given: Head) -> None:
    waiting = list(given)
    monkeypatch.setattr(ray_backend, "start_here", lambda _: waiting.pop(0))


def test_a_node_that_registers_late_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, head = Rays(monkeypatch, refusals=2), Head()
    heads(monkeypatch, head)
    backend = RayBackend.here()
    assert ray.tried == 3
    assert head.stopped == 0
    backend.close()
    assert head.stopped == 1


def test_one_error_after_the_last_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, head = Rays(monkeypatch, refusals=99), Head()
    heads(monkeypatch, head)
    with pytest.raises(DingError, match=r"in 3 attempt\(s\): No node info found") as told:
        RayBackend.here()
    assert ray.tried == 3
    assert head.stopped == 1
    for words in (ADDRESS, "less busy", "RAY_gcs_server_request_timeout_seconds", "the last words"):
        assert words in str(told.value)


def test_a_head_that_ended_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Rays(monkeypatch, refusals=1)
    dead, unborn, sound = Head(is_alive=False), Head(is_up=False), Head()
    heads(monkeypatch, dead, unborn, sound)
    RayBackend.here()
    assert ray.tried == 2
    assert [head.stopped for head in (dead, unborn, sound)] == [1, 1, 0]


def test_heads_are_not_started_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [Head(is_up=False) for _ in range(4)]
    heads(monkeypatch, *given)
    with pytest.raises(NotStartedError, match="did not start"):
        RayBackend.here()
    assert [head.stopped for head in given] == [1, 1, 1, 0]


def test_nobody_connects_to_a_ray_that_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, head = Rays(monkeypatch, refusals=0), Head()
    heads(monkeypatch, head)
    with pytest.raises(DingError, match="not wanted"):
        RayBackend.here(stop=lambda: True)
    assert (ray.tried, head.stopped) == (0, 1)


def test_a_node_waits_longer_for_its_registration_than_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def pass_time(seconds: float) -> None:
        now[0] += seconds

    def get_node(address: str, node_id: str) -> str:
        if now[0] < registered_at:
            raise RuntimeError("no such node")
        return f"{address} {node_id}"

    monkeypatch.setattr(node_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(node_module.time, "sleep", pass_time)
    registered_at = 100.0
    assert node_module.patient(get_node)("here", "me") == "here me"
    assert now[0] == 100.0
    now[0], registered_at = 0.0, 200.0
    with pytest.raises(RuntimeError, match="no such node"):
        node_module.patient(get_node)("here", "me")
    assert 120.0 < now[0] <= 121.0
