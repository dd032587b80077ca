"""Nothing is counted twice, and neither side runs away from the other."""

from __future__ import annotations

import json

import pytest

from ding.parallel.ledger import Balance, Ledger

CHUNK = {"env_steps": 10, "samples": 8, "dropped_steps": 2}


def test_chunks_are_accounted_for() -> None:
    ledger = Ledger()
    ledger.chunks.asked = 5
    ledger.store(CHUNK)
    ledger.store(CHUNK)
    ledger.chunks.lost += 1
    ledger.chunks.stale += 1
    assert ledger.chunks.open == 1
    assert (ledger.env_steps, ledger.samples, ledger.dropped_steps) == (20, 16, 4)
    ledger.restarted("collector")
    ledger.restarted("collector")
    assert ledger.restarts == {"collector": 2}
    assert [ledger.lag.note(lag) for lag in (3, 8, 5)] == [3, 8, 5]
    assert (ledger.lag.last, ledger.lag.most) == (5, 8)


def test_what_was_under_way_is_lost_on_resuming() -> None:
    ledger = Ledger(updates=7, version=3, restarts={"buffer": 1})
    ledger.chunks.asked = 3
    ledger.store(CHUNK)
    again = Ledger.from_plain(json.loads(json.dumps(ledger.plain())))
    assert again.chunks.open == 0
    assert again.chunks.lost == 2
    assert (again.updates, again.version, again.env_steps) == (7, 3, 10)
    again.restarted("buffer")
    assert ledger.restarts == {"buffer": 1}


def test_balance() -> None:
    balance = Balance(updates=1, samples=4, exempt=50)
    ledger = Ledger()
    assert balance.updates_due(ledger) == 0
    assert balance.may_collect(ledger, 149, ahead=100)
    assert not balance.may_collect(ledger, 150, ahead=100)
    ledger.samples = 150
    assert balance.updates_due(ledger) == 25
    assert not balance.may_collect(ledger, 0, ahead=100)
    ledger.updates = 10
    assert balance.updates_due(ledger) == 15
    assert balance.may_collect(ledger, 39, ahead=100)
    assert not balance.may_collect(ledger, 40, ahead=100)


@pytest.mark.parametrize(("updates", "samples"), [(1, 10), (1, 1), (3, 1)])
def test_forgiven_updates_are_never_made_up_for(updates: int, samples: int) -> None:
    balance, ledger = Balance(updates, samples), Ledger(samples=1000, updates=20)
    balance.forgive(ledger)
    assert balance.updates_due(ledger) == 0
    assert balance.may_collect(ledger, 9, ahead=10)
    ledger.samples += 100
    assert balance.updates_due(ledger) == pytest.approx(100 * updates / samples, abs=1)
