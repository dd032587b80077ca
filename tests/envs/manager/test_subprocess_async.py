"""What happens at the same time: slow envs, slow resets, spare envs, several threads."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.envs import (
    AsyncSubprocessEnvManager,
    EnvState,
    SyncSubprocessEnvManager,
    ThreadEnvManager,
)
from ding.envs.manager.workers.worker_pool import envs_per_worker
from ding.utils.batch import ByEnv

from ..counting import CountingEnv
from .breaking import BreakingEnv, GatedResets, SlowResets, SlowSteps

QUICK = {"retry_waiting_time": 0, "flight_dir": None, "envs_per_worker": 1}


def ones(ids: Any) -> ByEnv:
    ids = np.asarray(ids)
    return ByEnv(ids, np.ones(len(ids), dtype=np.int64))


def launched(cls: Any, fns: list[Any], **cfg: Any) -> Any:
    manager = cls(fns, {**QUICK, **cfg})
    manager.launch()
    return manager


@pytest.mark.parametrize("cls", [AsyncSubprocessEnvManager, ThreadEnvManager])
def test_slow_envs_hold_nobody_up(cls: Any) -> None:
    fns = [partial(SlowSteps, 0.3), partial(SlowSteps, 0), partial(SlowSteps, 0)]
    with launched(cls, fns, wait_num=1, step_wait_timeout=0.0) as manager:
        answered = set(manager.step(ones([0, 1, 2])).ids.tolist())
        assert answered
        assert 0 not in answered
        assert manager.in_flight == 3 - len(answered)
        with pytest.raises(RuntimeError, match="env 0 cannot step: it steps already"):
            manager.step({0: 1})
        while 0 not in answered:
            answered.update(manager.recv().ids.tolist())
        assert manager.in_flight == 0
        assert manager.ready_obs_id == [0, 1, 2]


@pytest.mark.parametrize("shared", [True, False])
def test_halves_of_a_step(shared: bool) -> None:
    fns = [CountingEnv] * 3
    with launched(AsyncSubprocessEnvManager, fns, shared_memory=shared) as manager:
        assert len(manager.recv(0.01)) == 0
        with pytest.raises(ValueError, match="several actions for one env"):
            manager.send(ones([1, 1]))
        manager.send(ones([0, 2]))
        assert manager.waiting_obs.ids.tolist() == [1]
        got: list[int] = []
        while manager.in_flight:
            step = manager.recv(5).stacked
            assert (step.obs[:, 1] == 1).all()
            got += step.env_id.tolist()
        assert sorted(got) == [0, 2]
        assert manager.waiting_obs.stacked[:, 1].tolist() == [1, 0, 1]
        manager.send(ones([0, 1, 2]))
        assert len(manager.waiting_obs) == 0
        with pytest.raises(RuntimeError, match="all envs have a step under way"):
            _ = manager.ready_obs
        manager.reset()
        assert manager.in_flight == 0
        assert manager.ready_obs.stacked[:, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("cls", [SyncSubprocessEnvManager, AsyncSubprocessEnvManager])
def test_slow_resets_go_on_in_the_background(cls: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    fns = [partial(GatedResets, str(gate)), partial(CountingEnv, 100)]
    with launched(cls, fns, wait_num=2) as manager:
        seconds = all_resets_were_slow(manager)
        for _ in range(3):
            manager._settle()
            manager.step(ones([0, 1]))
        assert manager.env_state[0] == EnvState.RESET
        assert manager.ready_obs_id == [1]
        assert manager.step(ones([1])).ids.tolist() == [1]
        gate.touch()
        manager._settle()
        assert manager.ready_obs.stacked[:, 1].tolist() == [0, 4]
        assert 0 < seconds[0, 0] < 60
        assert seconds[0, 1:].tolist() == [99, 99]


def all_resets_were_slow(manager: Any) -> Any:
    """On any machine: quick ones would be waited for. Returns the seconds that resets took."""
    seconds = manager._supervisor.pool.block["reset_seconds"]
    seconds[:] = 99
    return seconds


def test_who_waits_is_known_anew_after_every_change(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    fns = [partial(GatedResets, str(gate)), *[partial(CountingEnv, 100)] * 2]
    with launched(SyncSubprocessEnvManager, fns) as manager:
        all_resets_were_slow(manager)
        for _ in range(3):
            manager.step(ones([0, 1, 2]))
        for _ in range(2):
            step = manager.step(ones([1, 2])).stacked
            waiting = manager.ready_obs
            assert waiting.ids.tolist() == [1, 2]
            np.testing.assert_array_equal(waiting.stacked, step.obs)
            waiting.pop(1)
            assert sorted(manager.ready_obs) == [1, 2]
        gate.touch()
        manager._settle()
        assert manager.ready_obs.ids.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(manager.ready_obs.stacked[1:], step.obs)
        assert manager.ready_obs.stacked[0, 1] == 0


def test_slow_resets_are_waited_for_on_demand() -> None:
    with launched(SyncSubprocessEnvManager, [SlowResets, CountingEnv], reset_inplace=True) as m:
        for _ in range(7):
            m.step(ones(m.ready_obs.ids))
            assert m.ready_obs_id == [0, 1]


def test_spare_envs_take_over_at_once() -> None:
    with launched(SyncSubprocessEnvManager, [SlowResets] * 2, spare_envs=True) as manager:
        manager.seed(5)
        manager.reset()
        seeds = []
        for _ in range(4):
            seeds.append(manager.ready_obs.stacked[:, 0].tolist())
            manager._settle()  # A spare env is ready again; none is waited for from here on.
            for _ in range(3):
                step = manager.step(ones(manager.waiting_obs.ids)).stacked
            assert step.done.all()
            assert manager.waiting_obs.stacked[:, 1].tolist() == [0, 0]
        assert len({seed for pair in seeds for seed in pair}) == 8
        assert manager.episode == [3, 3]


def test_spare_envs_continue_from_a_state() -> None:
    def trace(manager: Any) -> list[Any]:
        seen = []
        for _ in range(7):
            step = manager.step(ones(manager.ready_obs.ids)).stacked
            seen.append((step.obs.tolist(), step.done.tolist()))
        return seen

    cfg = {"spare_envs": True, "reset_inplace": True}
    with launched(SyncSubprocessEnvManager, [CountingEnv] * 2, **cfg) as manager:
        manager.seed(1)
        manager.reset()
        manager.step(ones([0, 1]))
        state = manager.state_dict()
        expected = trace(manager)
        manager.load_state_dict(state)
        assert trace(manager) == expected
    with pytest.raises(ValueError, match="spare_envs"):
        SyncSubprocessEnvManager([CountingEnv] * 2, QUICK).load_state_dict(state)


def test_broken_spare_env_is_replaced() -> None:
    fns = [partial(BreakingEnv, events={(1, 1): "die"}), BreakingEnv]
    cfg = {"spare_envs": True, "max_retry": 9}
    with launched(SyncSubprocessEnvManager, fns, **cfg) as manager:
        abnormal = 0
        for _ in range(30):
            step = manager.step(ones(manager.ready_obs.ids)).stacked
            abnormal += int(step.abnormal.sum())
        assert abnormal == manager.faults["died"] >= 2
        assert set(manager.faults) == {"died"}


class Heavy(CountingEnv):
    """Observations and actions that are longer than a pipe."""

    _observation_space = None

    def _obs(self, event: str | None) -> Any:
        return np.full(50_000, self.steps)


def test_long_pickles_both_ways() -> None:
    big = np.zeros(300_000, dtype=np.int64)
    with launched(AsyncSubprocessEnvManager, [Heavy] * 2, envs_per_worker=2) as manager:
        for _ in range(3):
            manager.reset({0: {"big": big}, 1: {"big": big}})
            manager.send(ones([0, 1]))
        assert manager.kwargs[1]["big"].shape == big.shape
        while manager.in_flight:
            step = manager.recv().stacked
        assert step.obs.shape == (2, 50_000) or len(step.env_id) == 1


def test_any_thread_may_send() -> None:
    with launched(AsyncSubprocessEnvManager, [partial(CountingEnv, 50)] * 4) as manager:
        for _ in range(10):
            threads = [threading.Thread(target=manager.send, args=(ones([i]),)) for i in range(4)]
            for thread in threads:
                thread.start()
            while manager.in_flight or any(thread.is_alive() for thread in threads):
                manager.recv(0.01)
        assert manager.ready_obs.stacked[:, 1].tolist() == [10] * 4


def test_cheap_envs_share_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    cfg = {"context": "fork", "envs_per_worker": "auto"}
    for fn, count, expected in [
        (CountingEnv, 8, 4),
        (CountingEnv, 2, 1),
        (partial(SlowSteps, 0.001), 8, 1),
        (partial(SlowSteps, 60), 8, 1),
        (partial(BreakingEnv, events={(0, 0): "die"}), 8, 1),
        (partial(BreakingEnv, events={(0, 0): "exit"}), 8, 1),
    ]:
        assert envs_per_worker(cfg, [fn] * count) == expected
    assert ThreadEnvManager([CountingEnv] * 8, cfg)._envs_per_worker() == 1
    assert envs_per_worker({"envs_per_worker": 3}, [CountingEnv] * 8) == 3
