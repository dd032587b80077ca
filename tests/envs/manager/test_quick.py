"""Which resets are waited for."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ding.envs.manager.workers.watchdog import is_quick

NEVER = np.inf


@pytest.mark.parametrize(
    ("resets", "wanted"),
    [
        ([0.001, NEVER, NEVER], True),
        ([0.001, 5.0, NEVER], True),  # The first one built the simulator.
        ([1.0, 1.0, 1.0], False),
        ([1.0, 0.001, 1.0], True),  # One was only delayed.
    ],
)
def test_by_what_an_env_took_before(resets: list[float], wanted: bool) -> None:
    assert is_quick(np.array([resets]), 0, began=0.0) is wanted


@pytest.mark.parametrize(("other", "wanted"), [(0.001, True), (1.0, False)])
def test_by_what_others_took_after_their_first_one(other: float, wanted: bool) -> None:
    seconds = np.array([[5.0, NEVER, NEVER], [other, 5.0, NEVER]])
    assert is_quick(seconds, 0, began=0.0) is wanted


def test_in_doubt_it_is_waited_for_a_little() -> None:
    seconds, now = np.array([[5.0, NEVER, NEVER]]), time.monotonic()
    assert is_quick(seconds, 0, began=now)
    assert not is_quick(seconds, 0, began=now - 1.0)
