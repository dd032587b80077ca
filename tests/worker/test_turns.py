from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from ding.worker.collector.turns import Turns


class Work:
    """Hands out `n` items one by one; in between, sometimes nothing."""

    def __init__(self, n: int) -> None:
        self.left, self.looks = n, 0
        self.leaders = 0
        self.seen: list[int] = []
        self.threads: set[str] = set()

    def lead(self) -> list[int] | None:
        assert self.leaders == 0, "two threads lead at once"
        self.leaders += 1
        self.looks += 1
        self.leaders -= 1
        if self.looks % 3 == 0:
            return []
        if self.left == 0:
            return None
        self.left -= 1
        return [self.left]

    def act(self, found: Any) -> None:
        self.threads.add(threading.current_thread().name)
        self.seen += found


def helpers() -> int:
    return threading.active_count()


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_everything_is_done_once_and_threads_rest_in_between(threads: int | None) -> None:
    before, turns = helpers(), Turns(threads, 8)
    for n in (0, 1, 50):
        work = Work(n)
        turns.run(work.lead, work.act)
        assert sorted(work.seen) == list(range(n))
        assert turns.threads == (threads or 1)
        assert helpers() == before + turns.threads - 1
    turns.close()
    turns.close()
    assert helpers() == before
    work = Work(5)
    turns.run(work.lead, work.act)
    assert len(work.seen) == 5
    turns.close()


def test_forwards_run_at_once() -> None:
    """Three threads must be in `act` together for the barrier to open."""
    turns, work = Turns(3, 8), Work(9)
    barrier = threading.Barrier(3, timeout=20)
    turns.run(work.lead, lambda found: (barrier.wait(), work.act(found))[1])
    assert len(work.seen) == 9
    assert len(work.threads) == 3
    turns.close()


def test_never_more_threads_than_work() -> None:
    turns, work = Turns(16, 2), Work(9)
    turns.run(work.lead, work.act)
    assert turns.threads == 2
    turns.close()


def test_auto_adds_threads_for_what_only_waits() -> None:
    turns, work = Turns(None, 4), Work(40)

    def act(found: Any) -> None:
        time.sleep(0.002)
        work.act(found)

    turns.run(work.lead, act)
    assert sorted(work.seen) == list(range(40))
    assert turns.threads == 4
    assert len(work.threads) > 1
    turns.close()


def test_auto_stays_with_one_thread_for_what_computes() -> None:
    turns, work = Turns(None, 4), Work(200)
    turns.run(work.lead, work.act)
    assert turns.threads == 1
    turns.close()


@pytest.mark.parametrize("where", ["lead", "act"])
@pytest.mark.parametrize("in_helper", [False, True])
@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
def test_what_any_thread_raises_ends_the_run(where: str, in_helper: bool, kind: Any) -> None:
    before, turns, work = helpers(), Turns(3, 8), Work(10**6)
    main = threading.current_thread()

    def fail(name: str) -> None:
        if where == name and (threading.current_thread() is not main) == in_helper:
            raise kind("boom")

    def lead() -> Any:
        fail("lead")
        return work.lead()

    def act(found: Any) -> None:
        fail("act")
        time.sleep(0.0005)

    with pytest.raises(kind, match="boom"):
        turns.run(lead, act)
    assert helpers() == before
    assert turns.threads == 1
    again = Work(7)
    turns.run(again.lead, again.act)
    assert len(again.seen) == 7
    turns.close()
    assert helpers() == before


def test_without_wait_a_helper_may_end_later() -> None:
    turns, gate, begun, seen = Turns(2, 2), threading.Event(), threading.Event(), []
    items = iter([["slow"], ["quick"]])

    def lead() -> list[str] | None:
        return next(items, None)

    def act(found: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(10)
        else:
            begun.set()
            gate.wait(10)
        seen.append(found[0])

    turns.run(lead, act, wait=False)
    early = len(seen)
    gate.set()
    turns.settle()
    assert early < 2 == len(seen)
    turns.close()


def test_what_a_late_helper_raises_is_not_lost() -> None:
    turns, gate, begun = Turns(2, 2), threading.Event(), threading.Event()
    items = iter([[1], [2]])

    def act(found: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(10)
        else:
            begun.set()
            gate.wait(10)
            raise ValueError("late")

    turns.run(lambda: next(items, None), act, wait=False)
    gate.set()
    work = Work(3)
    with pytest.raises(ValueError, match="late"):
        turns.settle()
        turns.run(work.lead, work.act)
    turns.run(work.lead, work.act)
    assert len(work.seen) == 3
    turns.close()
