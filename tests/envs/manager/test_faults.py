from __future__ import annotations

import signal
import threading
import time

import pytest

from ding.envs.manager.faults import check_deadlines_possible, deadline
from ding.utils.errors import DingError


def test_expires_and_restores_the_handler() -> None:
    before = signal.getsignal(signal.SIGALRM)
    expected = pytest.raises(TimeoutError, match=r"step of env 3 took longer than 0\.01")
    with expected, deadline(0.01, "step of env 3"):
        time.sleep(5)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_outer_timer_goes_on() -> None:
    with pytest.raises(TimeoutError, match="outer"), deadline(0.05, "outer"):
        with deadline(10, "inner"):
            pass
        time.sleep(5)


def test_other_threads_are_told() -> None:
    errors: list[Exception] = []

    def check() -> None:
        try:
            check_deadlines_possible()
        except DingError as error:
            errors.append(error)

    check_deadlines_possible()
    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert "main thread" in str(errors[0])
