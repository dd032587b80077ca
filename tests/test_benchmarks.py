"""What the race is measured by: the workload, its limit, the log of faults and the tables."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.collector import overhead, race
from benchmarks.collector.faults import COUNTED_AS, FaultLog, FaultyCartPole, InjectedError
from benchmarks.collector.limit import _Envs, free_ends, limit_seconds, sync_ends
from benchmarks.collector.soak import missing
from benchmarks.collector.workload import LOADS, Infer, Load, Ring, SleepEnv, load_of
from benchmarks.measure import BenchmarkError, Worker

EXACT = Load("exact", (3,), reset=10.0, step=2.0, infer=1.0, episode=16, spread=0.0)
"""Without spread the first episodes of the 8 envs have 1, 3, 5, ... steps, later ones 16."""


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    return naps


@pytest.mark.parametrize("ends_of", [free_ends, sync_ends])
def test_envs_that_reset_do_not_hold_up_the_others(ends_of: Any) -> None:
    ends = ends_of(EXACT, 50)
    # Steps end every 3 seconds; env 0 resets from 3 on, env 1 from 9, env 2 from 15 on.
    by_time = Counter(round(end, 6) for end in ends)
    assert [by_time[t] for t in (3, 6, 9, 12, 15)] == [8, 7, 7, 6, 6]


def test_only_a_free_env_goes_on_the_moment_it_is_ready() -> None:
    # Env 0 is ready at 13: its next step ends 3 seconds later, in sync with the others' round.
    assert 16 in [round(end, 6) for end in free_ends(EXACT, 60)]
    assert 16 not in [round(end, 6) for end in sync_ends(EXACT, 60)]
    assert 18 in [round(end, 6) for end in sync_ends(EXACT, 60)]


def test_the_limit_leaves_out_the_warm_up() -> None:
    endless = Load("endless", (1,), reset=1.0, step=2.0, infer=1.0, episode=10**6, spread=0.0)
    # 4 collects of 80 samples are 40 steps of each env.
    assert limit_seconds(endless, 4) == pytest.approx(40 * 3.0)


def test_envs_sleep_what_the_limit_counts(slept: list[float]) -> None:
    load, index = load_of("middle", reset_scale=5), 3
    env, simulated = SleepEnv(load, index), _Envs(load, seed=0)
    env.reset()
    slept.clear()
    for _ in range(1500):
        done = env.step(1)[2]
        if done:
            env.reset()
        step, reset = simulated.step(index)
        assert slept == [step, reset] if done else [step]
        slept.clear()


def test_a_second_reset_before_the_first_step_changes_nothing(slept: list[float]) -> None:
    once, twice = SleepEnv(EXACT, 2), SleepEnv(EXACT, 2)
    once.reset()
    twice.reset()
    twice.reset()
    assert [once.step(1)[2] for _ in range(5)] == [twice.step(1)[2] for _ in range(5)]
    assert once.step(1)[2]  # the episode of 5 steps was over


def test_a_spare_env_has_other_durations_and_no_short_first_episode(slept: list[float]) -> None:
    env, spare = SleepEnv(LOADS["small"], 0), SleepEnv(LOADS["small"], 0)
    spare.become_spare()
    for one in (env, spare):
        one.reset()
    assert slept[0] != slept[1]
    done = [env.step(1)[2] for _ in range(31)], [spare.step(1)[2] for _ in range(31)]
    assert done[0][-1] and not any(done[1])


def test_infer_counts_calls_and_stays_within_the_spread(slept: list[float]) -> None:
    infer = Infer(LOADS["small"])
    for _ in range(200):
        infer()
    assert infer.calls == 200
    assert 0.4 * 0.004 <= min(slept) < 0.7 * 0.004
    assert 1.3 * 0.004 < max(slept) <= 1.6 * 0.004


def test_ring_keeps_rows_and_begins_anew_when_full() -> None:
    ring = Ring(EXACT, size=4)
    for value in (1.0, 2.0, 3.0):
        rows = np.full((2, 3), value)
        ring.push(rows, np.ones(2), np.full(2, value), np.zeros(2), rows + 1)
    assert ring._reward.tolist() == [3.0, 3.0, 2.0, 2.0]
    assert ring._next_obs[:, 0].tolist() == [4.0, 4.0, 3.0, 3.0]


def test_fault_log_is_full_after_its_limit(tmp_path: Path) -> None:
    log = FaultLog(tmp_path / "log", limit=2)
    assert [log.claim("hang", 7), log.full, log.claim("kill", 0)] == [True, False, True]
    assert log.full
    assert not log.claim("nan", 1)
    assert log.records() == [("hang", 7), ("kill", 0)]
    assert log.injected() == {"timeout": 1, "died": 1}


def faulty(path: Path, kind: str) -> FaultyCartPole:
    env = FaultyCartPole(dict(log=str(path), limit=1, gap=5.0, env=2, seed=0))
    env._kind = kind
    env.reset()
    return env


def test_faulty_env_breaks_once_and_says_so_before(tmp_path: Path) -> None:
    env = faulty(tmp_path / "log", "raise")
    with pytest.raises(InjectedError, match="env 2"):
        while not env.step(0).done:
            pass
    assert FaultLog(tmp_path / "log", 1).records() == [("raise", 2)]


def test_faulty_env_gives_nan_then_is_sound_when_the_log_is_full(tmp_path: Path) -> None:
    env, broken = faulty(tmp_path / "log", "nan"), 0
    for step in range(200):
        timestep = env.step(step % 2)
        broken += bool(np.isnan(timestep.obs).any())
        if timestep.done:
            env.reset()
    assert broken == 1
    assert set(COUNTED_AS) == {"raise", "hang", "hang_gil", "nan", "kill", "kill_later"}


def test_missing_names_faults_that_were_not_counted() -> None:
    counted = Counter(died=3, timeout=2, lost=4)
    assert missing(Counter(died=3, timeout=1, nan=2), counted) == {"nan": 2}


def test_race_table_says_which_goals_are_met() -> None:
    entrants = {
        "sync": dict(ratio=1.30, seconds=36.0),
        "overlap": dict(ratio=1.07, seconds=29.5),
        "sb3": dict(ratio=1.61, seconds=44.0),
    }
    goals = dict(overlap=1.06, sync=1.36)
    cell = dict(title="small", goals=goals, sync_limit=1.24, entrants=entrants)
    lines = race.table(dict(scale=10.0, cells=[cell])).splitlines()
    assert "| simulated: wait for all, reset in background | 1.24 |" in lines
    assert "scaled down by 10" in lines[0]
    assert "| goal: async | 1.06 MISSED |" in lines
    assert "| goal: sync | 1.36 met |" in lines
    assert lines[-1] == "| ours before every peer | sync, overlap (best peer 1.61) |"


def test_overhead_compares_with_the_fastest_peer_of_the_same_round() -> None:
    rounds = [
        dict(sync=90.0, overlap=60.0, sb3=20.0, gymnasium=10.0),
        dict(sync=40.0, overlap=44.0, sb3=5.0, gymnasium=8.0),
        dict(sync=40.0, overlap=20.0, sb3=10.0, gymnasium=8.0),
    ]
    found = overhead._entrants(rounds)
    assert found["sync"]["ratio"] == pytest.approx(4.5)
    assert found["overlap"]["ratio"] == pytest.approx(3.0)
    assert found["gymnasium"]["steps_per_second"] == 8.0
    assert overhead._verdict(dict(goal=3.0, entrants=found)) == "met"
    assert overhead._verdict(dict(goal=3.1, entrants=found)) == "MISSED"


_WORKER = """
import sys
from benchmarks.work import Turns, Work
job = Work(env_id="x", n_env=1, env_steps=40, batch_size=1, learning_rate=1.0, hidden=(), turns=4)
turns = Turns(job, True)
print("a greeting")
for steps in range(40):
    turns.wait(steps)
    if sys.argv[1] == "fails" and steps == 25:
        raise ValueError("broken")
print('{"steps": 40}')
"""


@pytest.mark.parametrize("ending", ["finishes", "fails"])
def test_a_worker_stops_at_every_part_of_its_work(tmp_path: Path, ending: str) -> None:
    command = [sys.executable, "-c", _WORKER, ending]
    said = []
    with Worker(command, directory=str(tmp_path), env={}) as worker:
        try:
            while (line := worker.line_with("turn", "{")).startswith("turn"):
                said.append(line)
                worker.go()
        except BenchmarkError as error:
            line = str(error)
    assert len(said) == (4 if ending == "finishes" else 3)  # after 0, 10, 20 and 30 steps
    assert ('{"steps": 40}' if ending == "finishes" else "ValueError: broken") in line
