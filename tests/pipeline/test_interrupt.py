"""Signals before and during a run."""

from __future__ import annotations

import os
import signal

import pytest

from ding.pipeline.interrupt import EarlyInterrupt, Interrupt


@pytest.fixture
def told() -> list[str]:
    return []


def test_the_first_signal_asks_and_the_next_one_raises(told: list[str]) -> None:
    with Interrupt(told.append) as interrupt:
        assert not interrupt.asked
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.asked and "saving before leaving" in told[0]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("came_early", [False, True])
def test_a_signal_that_came_before_the_run_is_not_lost(came_early: bool, told: list[str]) -> None:
    usual = signal.signal(signal.SIGINT, EarlyInterrupt())
    try:
        if came_early:
            os.kill(os.getpid(), signal.SIGINT)
        with Interrupt(told.append) as interrupt:
            assert interrupt.asked == came_early
    finally:
        signal.signal(signal.SIGINT, usual)
