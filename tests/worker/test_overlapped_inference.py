from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from ding.worker.collector.overlapped_inference import LeaderFollowers


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

    def process(self, event: Any) -> None:
        self.threads.add(threading.current_thread().name)
        self.seen += event


def n_thread() -> int:
    return threading.active_count()


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_everything_is_done_once_and_threads_rest_in_between(threads: int | None) -> None:
    before, pool = n_thread(), LeaderFollowers(threads, 8)
    for n in (0, 1, 50):
        work = Work(n)
        pool.run(work.lead, work.process)
        assert sorted(work.seen) == list(range(n))
        assert pool.count == (threads or 1)
        assert n_thread() == before + pool.count - 1
    pool.close()
    pool.close()
    assert n_thread() == before
    work = Work(5)
    pool.run(work.lead, work.process)
    assert len(work.seen) == 5
    pool.close()


def test_forwards_run_at_once() -> None:
    """Three threads must be in `process` together for the barrier to open."""
    pool, work = LeaderFollowers(3, 8), Work(9)
    barrier = threading.Barrier(3, timeout=20)
    pool.run(work.lead, lambda event: (barrier.wait(), work.process(event))[1])
    assert len(work.seen) == 9
    assert len(work.threads) == 3
    pool.close()


def test_never_more_threads_than_work() -> None:
    pool, work = LeaderFollowers(16, 2), Work(9)
    pool.run(work.lead, work.process)
    assert pool.count == 2
    pool.close()


def test_auto_adds_threads_for_what_only_waits() -> None:
    pool, work = LeaderFollowers(None, 4), Work(40)

    def process(event: Any) -> None:
        time.sleep(0.002)
        work.process(event)

    pool.run(work.lead, process)
    assert sorted(work.seen) == list(range(40))
    assert pool.count == 4
    assert len(work.threads) > 1
    pool.close()


def test_auto_stays_with_one_thread_for_what_computes() -> None:
    pool, work = LeaderFollowers(None, 4), Work(200)
    pool.run(work.lead, work.process)
    assert pool.count == 1
    pool.close()


@pytest.mark.parametrize("where", ["lead", "process"])
@pytest.mark.parametrize("in_follower", [False, True])
@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
def test_what_any_thread_raises_ends_the_run(where: str, in_follower: bool, kind: Any) -> None:
    before, pool, work = n_thread(), LeaderFollowers(3, 8), Work(10**6)
    main = threading.current_thread()

    def fail(name: str) -> None:
        if where == name and (threading.current_thread() is not main) == in_follower:
            raise kind("boom")

    def lead() -> Any:
        fail("lead")
        return work.lead()

    def process(event: Any) -> None:
        fail("process")
        time.sleep(0.0005)

    with pytest.raises(kind, match="boom"):
        pool.run(lead, process)
    assert n_thread() == before
    assert pool.count == 1
    again = Work(7)
    pool.run(again.lead, again.process)
    assert len(again.seen) == 7
    pool.close()
    assert n_thread() == before


def test_without_wait_a_follower_may_end_later() -> None:
    pool, gate, begun, seen = LeaderFollowers(2, 2), threading.Event(), threading.Event(), []
    items = iter([["slow"], ["quick"]])

    def lead() -> list[str] | None:
        return next(items, None)

    def process(event: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(10)
        else:
            begun.set()
            gate.wait(10)
        seen.append(event[0])

    pool.run(lead, process, wait=False)
    early = len(seen)
    gate.set()
    pool.wait_idle()
    assert early < 2 == len(seen)
    pool.close()


def test_what_a_late_follower_raises_is_not_lost() -> None:
    pool, gate, begun = LeaderFollowers(2, 2), threading.Event(), threading.Event()
    items = iter([[1], [2]])

    def process(event: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            begun.wait(10)
        else:
            begun.set()
            gate.wait(10)
            raise ValueError("late")

    pool.run(lambda: next(items, None), process, wait=False)
    gate.set()
    work = Work(3)
    with pytest.raises(ValueError, match="late"):
        pool.wait_idle()
        pool.run(work.lead, work.process)
    pool.run(work.lead, work.process)
    assert len(work.seen) == 3
    pool.close()
