"""Envs that raise, hang or die in workers, and workers that are killed."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.envs import (
    AsyncSubprocessEnvManager,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
)
from ding.envs.manager.flight.file import load_flight
from ding.utils.batch import ByEnv
from ding.utils.errors import EnvError

from ..counting import CountingEnv
from .breaking import BreakingEnv

QUICK = {"retry_waiting_time": 0, "flight_dir": None, "envs_per_worker": 2, "max_retry": 2}


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    assert not multiprocessing.active_children()


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for event, cls in (("die", SyncSubprocessEnvManager), ("raise", ThreadEnvManager)):
        with launched({(0, 2): event}, mark=str(tmp_path / event), cls=cls) as manager:
            for _ in range(4):
                step_all(manager)
            assert sum(manager.faults.values())
    del manager
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def launched(events: Any = None, *, cls: Any = SyncSubprocessEnvManager, **cfg: Any) -> Any:
    """Env 0 of three has the events; it shares a process with env 1."""
    mark = cfg.pop("mark", "")
    fns: list[Callable[[], Any]] = [partial(BreakingEnv, events=events, mark=mark)]
    manager = cls(fns + [BreakingEnv] * 2, {**QUICK, **cfg})
    manager.launch()
    return manager


def step_all(manager: Any) -> Any:
    ready = manager.ready_obs
    return manager.step(ByEnv(ready.ids, np.ones(len(ready.ids), dtype=np.int64))).stacked


def steps_of(manager: Any) -> list[float]:
    return [float(obs[1]) for obs in manager.ready_obs.values()]


def failures_in_a_row(manager: Any) -> list[int]:
    return [slot.failures for slot in manager._slots]


def pids(manager: Any) -> list[int]:
    return [worker.handle.pid for worker in manager._supervisor.pool.workers]


@pytest.mark.parametrize(
    ("event", "kind", "told"),
    [
        ("raise", "raised", "ZeroDivisionError: boom"),
        ("odd", "raised", "OddError: 1 and 2"),
        ("exit", "raised", "SystemExit: 3"),
        ("nan obs", "nan", "obs is NaN"),
        ("nan reward", "nan", "reward is NaN"),
        ("shape", "shape", "has shape (3,)"),
        ("dtype", "shape", "dtype complex128"),
    ],
)
def test_tolerated_failure_drops_the_episode(
    event: str, kind: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    shared = event != "dtype"  # Pickled observations are checked as well.
    with (
        launched({(0, 2): event}, shared_memory=shared) as manager,
        caplog.at_level(logging.WARNING),
    ):
        step_all(manager)
        step = step_all(manager)
        assert step.abnormal.tolist() == [True, False, False]
        assert not step.done.any()
        assert step.reward.tolist() == [0, 2, 2]
        assert told in step.info[0]["error"]
        assert step.info[0]["abnormal"] is True
        assert np.isfinite(step.obs).all()
        assert "Env 0 step failed" in caplog.text
        assert steps_of(manager) == [0, 2, 2]
        assert manager.faults == {kind: 1}
        assert failures_in_a_row(manager) == [1, 0, 0]
        step_all(manager)
        assert failures_in_a_row(manager) == [0, 0, 0]


@pytest.mark.parametrize("event", ["raise", "odd"])
def test_failures_in_a_row_end_with_the_envs_own_traceback(event: str) -> None:
    manager = launched({(0, 1): "raise", (1, 1): event})
    manager.seed(20)
    assert step_all(manager).abnormal.tolist() == [True, False, False]
    with pytest.raises(EnvError, match="Env 0 step failed") as caught:
        step_all(manager)
    text = str(caught.value)
    assert "episode step 1, last actions [1]" in text
    assert "counting.py:" in text or "breaking.py:" in text
    assert "Traceback" in text
    name = "ZeroDivisionError" if event == "raise" else "OddError"
    assert name in text
    expected = ZeroDivisionError if event == "raise" else RuntimeError
    assert isinstance(caught.value.__cause__, expected)
    assert manager.closed


@pytest.mark.parametrize("event", ["die", "hang", "hang with the GIL"])
def test_lost_process(event: str, tmp_path: Path) -> None:
    limit = {"step_timeout": 0.2} if event != "die" else {}
    with launched({(0, 2): event}, mark=str(tmp_path / "mark"), **limit) as manager:
        before = pids(manager)
        step_all(manager)
        step = step_all(manager)
        # Env 1 was in the same process, and is not to blame.
        assert step.abnormal.tolist() == [True, True, False]
        kind = "died" if event == "die" else "timeout"
        assert manager.faults == {kind: 1, "lost": 1}
        assert failures_in_a_row(manager) == [1, 0, 0]
        word = "SIGKILL" if event == "die" else "step of env 0 took longer than 0.2"
        assert word in step.info[0]["error"]
        assert pids(manager)[0] != before[0]
        assert pids(manager)[1] == before[1]
        manager._settle()
        assert steps_of(manager) == [0, 0, 2]
        for _ in range(4):
            step_all(manager)
        assert manager.faults == {kind: 1, "lost": 1}


def test_flight_of_a_failure_can_be_replayed(tmp_path: Path) -> None:
    manager = SyncSubprocessEnvManager(
        [partial(CountingEnv, 9), partial(CountingEnv, 9, {(1, 2): "raise", (0, 9): "truncate"})],
        {**QUICK, "max_retry": 1, "flight_dir": str(tmp_path)},
    )
    manager.seed(7)
    manager.launch()
    with pytest.raises(EnvError, match=r"seed 8, episode step 2, last actions \[1, 1\]"):
        for _ in range(20):
            step_all(manager)
    (file,) = tmp_path.iterdir()
    flight = load_flight(file)
    seeded = CountingEnv()
    seeded.seed(8)
    expected = [seeded.reset(), seeded.episode_seed, seeded.reset(), seeded.episode_seed]
    assert flight.episode_seed == expected[3]
    assert flight.resets == 2
    assert "ZeroDivisionError: boom" in flight.traceback


def test_timeout_beyond_the_retries() -> None:
    manager = launched({(0, 1): "hang"}, step_timeout=0.1, max_retry=1)
    with pytest.raises(TimeoutError, match=r"step of env 0 took longer than 0\.1 seconds"):
        step_all(manager)
    assert manager.closed


def test_killed_while_idle() -> None:
    with launched() as manager:
        step_all(manager)
        os.kill(pids(manager)[0], signal.SIGKILL)
        manager._supervisor.pool.workers[0].handle._process.join()
        assert steps_of(manager) == [1, 1, 1]
        step = step_all(manager)
        assert step.abnormal.tolist() == [True, True, False]
        manager._settle()
        assert steps_of(manager) == [0, 0, 2]
        assert manager.faults == {"died": 1, "lost": 1}


@pytest.mark.parametrize("event", ["die", "hang", "raise"])
def test_reset_that_breaks_once(
    event: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limit = {"reset_timeout": 0.3} if event == "hang" else {}
    with launched({(1, 0): event}, mark=str(tmp_path / "mark"), **limit) as manager:
        for _ in range(3):
            step = step_all(manager)
        assert step.done.all()
        assert not step.abnormal.any()
        manager._settle()
        first = {"die": "died", "hang": "timeout", "raise": "reset"}[event]
        assert manager.faults[first] == 1
        assert manager.faults["lost"] == (0 if event == "raise" else 1)
        assert "Env 0 reset failed" in caplog.text
        assert len(steps_of(manager)) == 3


@pytest.mark.parametrize("event", ["die", "hang", "raise"])
def test_reset_failure(event: str) -> None:
    events = {(0, 0): event, (1, 0): event}
    limit = {"reset_timeout": 0.1} if event == "hang" else {}
    with pytest.raises(EnvError, match=r"Env 0 reset has exceeded max retries\(2\)") as caught:
        launched(events, envs_per_worker=1, **limit)
    assert isinstance(caught.value, TimeoutError) == (event == "hang")


@pytest.mark.parametrize("event", ["raise", "die"])
def test_env_that_cannot_be_made(event: str) -> None:
    class Sound(CountingEnv):
        made = 0

    def make() -> Any:
        # The parent looks at the spaces of a sound one.
        Sound.made += 1
        return Sound() if Sound.made == 1 else BreakingEnv(events={"make": event})

    manager = SyncSubprocessEnvManager([make, CountingEnv], QUICK)
    with pytest.raises(EnvError, match="no display" if event == "raise" else "SIGKILL"):
        manager.launch()
    assert manager.closed


def test_killed_at_any_moment() -> None:
    rng = np.random.default_rng(0)
    cfg = {"max_retry": 1000, "retry_type": "renew"}
    with launched(cls=AsyncSubprocessEnvManager, **cfg) as manager:
        killed = set()
        for k in range(100):
            if k % 10 == 0:
                pid = pids(manager)[int(rng.integers(2))]
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
            step_all(manager)
        while killed & set(pids(manager)):
            manager._supervisor.pump()
        manager.state_dict()
        assert manager.faults["died"] == len(killed)


def test_close_does_not_wait_for_hung_envs() -> None:
    manager = launched({(0, 1): "hang with the GIL"}, cls=AsyncSubprocessEnvManager)
    manager.send(ByEnv(np.arange(3), np.ones(3, dtype=np.int64)))
    manager.close()
    assert manager.closed


def test_managers_that_are_forgotten_end_their_workers() -> None:
    manager = launched()
    workers = pids(manager)
    del manager
    assert not any(map(is_running, workers))


SCRIPT = """
import sys, time
from functools import partial
import numpy as np
from ding.envs import AsyncSubprocessEnvManager
from ding.envs.manager.flight.file import load_flight
from ding.utils.batch import ByEnv
from tests.envs.manager.breaking import BreakingEnv

fns = [partial(BreakingEnv, events={{(0, 1): {event!r}}})] * 3
one = AsyncSubprocessEnvManager(fns, {{"envs_per_worker": 1, "context": {context!r}}})
one.launch()
two = AsyncSubprocessEnvManager(fns[:2], {{"envs_per_worker": 1}})
two.launch()
for manager in (one, two):
    ready = manager.ready_obs
    manager.send(ByEnv(ready.ids, np.ones(len(ready.ids), dtype=np.int64)))
pids = [m.handle.pid for manager in (one, two) for m in manager._supervisor.pool.workers]
sys.stdout.write(" ".join(map(str, pids)) + chr(10))
sys.stdout.flush()
time.sleep({sleep})
"""


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("event", "context", "end"),
    [
        ("hang with the GIL", "fork", signal.SIGKILL),
        ("hang", "forkserver", signal.SIGKILL),
        ("none", "fork", None),
        ("hang", "fork", signal.SIGINT),
    ],
)
def test_workers_end_with_their_parent(event: str, context: str, end: signal.Signals) -> None:
    script = SCRIPT.format(event=event, context=context, sleep=60 if end else 0)
    root = Path(__file__).parents[3]
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root
    )
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    parent.stdout.close()
    assert len(workers) == 5
    if end is not None:
        parent.send_signal(end)
    parent.wait()
    until = time.monotonic() + 10
    while any(map(is_running, workers)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(is_running, workers))
