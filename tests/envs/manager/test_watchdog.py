"""What counts as too long, and what does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from ding.envs.manager.faults import Phase
from ding.envs.manager.workers.watchdog import Watchdog

CFG = {"connect_timeout": 60, "step_timeout": 8, "reset_timeout": None}


def overdue(watchdog: Watchdog, now: float, *, stepping_since: float | None) -> list[str]:
    """Of one worker with one env, which steps or owes an answer."""
    steps = stepping_since is not None
    block: Any = {
        "flags": np.zeros(1),
        "running": np.array([int(Phase.STEP) if steps else -1]),
        "started": np.array([stepping_since or 0.0]),
    }
    assert watchdog.is_due(now)
    return [why for _, why in watchdog.overdue(block, 1, now, lambda _: True)]


@pytest.mark.parametrize("steps", [True, False])
def test_time_in_which_nobody_looked_does_not_count(steps: bool) -> None:
    watchdog = Watchdog(CFG)
    limit = 8 if steps else 60
    since = 1000.0 if steps else None
    for now in range(1000, 1004):
        assert overdue(watchdog, now, stepping_since=since) == []
    back = 5000  # Both were stopped.
    told = {n: overdue(watchdog, back + n, stepping_since=since) for n in range(limit)}
    assert [n for n, why in told.items() if why] == list(range(limit - 4, limit))


def test_a_step_that_began_just_before_an_absence_has_its_time() -> None:
    watchdog = Watchdog(CFG)
    assert watchdog.is_due(1000.0)
    told = {n: overdue(watchdog, 5000 + n, stepping_since=1000.5) for n in range(8)}
    assert [n for n, why in told.items() if why] == [7]


def test_an_env_that_hangs_is_noticed_between_long_updates() -> None:
    watchdog = Watchdog(CFG)
    noticed = [n for n in range(20) if overdue(watchdog, 100.0 * n, stepping_since=0.0)]
    assert noticed[0] == 5


def test_an_env_that_hangs_is_noticed_in_time() -> None:
    watchdog = Watchdog(CFG)
    told = {now: overdue(watchdog, now, stepping_since=0.0) for now in range(12)}
    assert [now for now, why in told.items() if why] == [9, 10, 11]
    assert "step of env 0 took longer than 8 seconds" in told[9][0]


STOPPED = """
import time
import gymnasium as gym
from ding.envs import DingEnvWrapper, SyncSubprocessEnvManager

class Slow(gym.Wrapper):
    def step(self, action):
        time.sleep(0.05)
        return super().step(action)

def make():
    return DingEnvWrapper(Slow(gym.make("CartPole-v1")))

cfg = dict(step_timeout=1, connect_timeout=1, envs_per_worker=1, flight_dir=None)
with SyncSubprocessEnvManager([make] * 2, cfg) as manager:
    manager.launch()
    print("ready", flush=True)
    until = time.monotonic() + 4
    while time.monotonic() < until:
        manager.step({i: 1 for i in manager.ready_obs})
    assert not sum(manager.faults.values()), manager.faults
"""


def test_ctrl_z_is_no_timeout() -> None:
    command = [sys.executable, "-c", STOPPED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(2.5)
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait(timeout=30) == 0
