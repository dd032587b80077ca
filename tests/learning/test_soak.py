"""Training goes on while envs are killed, hang, raise and give NaN; the long run is a benchmark."""

from __future__ import annotations

import pytest

from benchmarks.collector.soak import Soak, soak_and_check

pytestmark = pytest.mark.learning


@pytest.fixture(scope="module")
def found() -> dict[str, object]:
    return soak_and_check(Soak(n_fault=30, gap=40.0, goal=120.0, max_env_step=60_000))


def test_every_fault_is_accounted_for(found: dict[str, object]) -> None:
    injected, counted = found["injected"], found["counted"]
    assert isinstance(injected, dict)
    assert isinstance(counted, dict)
    assert sum(injected.values()) == 30
    assert set(injected) == {"raised", "timeout", "nan", "died"}
    assert {kind: counted[kind] for kind in injected} == injected


def test_training_reaches_its_return_all_the_same(found: dict[str, object]) -> None:
    assert found["reached"]


def test_nothing_is_left_behind(found: dict[str, object]) -> None:
    assert found["processes_left"] == 0
    assert found["segments_left"] == []


def test_nothing_is_left_when_the_parent_is_killed(found: dict[str, object]) -> None:
    killed = found["after_parent_killed"]
    assert isinstance(killed, dict)
    assert killed["workers"] >= 8
    assert (killed["processes_left"], killed["segments_left"]) == (0, [])
