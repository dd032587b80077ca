"""Collectors and evaluator with managers whose envs answer out of turn."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from ding.config.merge import merge
from ding.config.schema import schema_of
from ding.envs import BaseEnvManager, create_env_manager
from ding.utils.batch import ByEnv
from ding.utils.errors import ConfigError
from ding.worker import BaseSerialEvaluator, EpisodeCollector, SampleCollector
from ding.worker.collector.waiting_envs import await_obs, check_alive
from worker.async_fakes import CountingManager, OutOfTurnManager, ScriptedManager, scripted
from worker.fakes import RowsPolicy, StepLogEnv, dqn, manager_of
from worker.test_collector import assert_same_samples, brute_force, logs_of, ppo

EXPLORE = {"eps": 0.5}


@pytest.fixture(autouse=True)
def _logs_elsewhere(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)


def collector_of(
    env: Any, policy: Any = None, overlap: Any = 1, kind: Any = SampleCollector
) -> Any:
    return kind(dict(overlap=overlap), env=env, policy=(policy or dqn()).collect_mode)


def n_waiting(collector: Any) -> int:
    return collector._sampler.available


# --- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ScriptedManager, CountingManager, OutOfTurnManager])
@pytest.mark.parametrize("overlap", [1, 3, "auto"])
@pytest.mark.parametrize("nstep", [1, 3])
@pytest.mark.parametrize(("n_env", "n_sample"), [(1, 8), (3, 1), (8, 20)])
def test_off_policy_samples_are_those_of_the_raw_steps(
    kind: Any, overlap: Any, nstep: int, n_env: int, n_sample: int
) -> None:
    with collector_of(scripted(n_env, kind), dqn(nstep=nstep), overlap) as collector:
        got: list[Any] = []
        for k in range(60 // n_sample + 2):
            part = collector.collect(n_sample, train_iter=k, policy_kwargs=EXPLORE)
            assert len(part) == n_sample
            got += part
        logs = logs_of(collector)
        assert collector.envstep == sum(map(len, logs))
        assert collector.stale_steps == collector.dropped_steps == 0
        assert_same_samples(got, logs, nstep)
        # Nothing is lost, not even what was under way at the end of a collect.
        ready = sum(len(brute_force(log, nstep)) for log in logs)
        collector._sampler.make(0)
        assert len(got) + n_waiting(collector) == ready


def test_steps_under_way_come_with_the_next_collect() -> None:
    with collector_of(scripted(8)) as collector:
        collector.collect(4, policy_kwargs=EXPLORE)
        assert collector._env.in_flight > 0
        before = collector.envstep
        collector.collect(40, policy_kwargs=EXPLORE)
        assert collector.envstep - before <= 48


def test_as_few_steps_as_samples_when_they_come_one_by_one() -> None:
    with collector_of(scripted(4, single=True, lengths=(50,)), dqn(nstep=3)) as collector:
        collector.collect(8, policy_kwargs=EXPLORE)
        assert n_waiting(collector) == 0
        assert collector.envstep <= 8 + 4 * 2


def test_process_rows_policy_sees_its_own_obs() -> None:
    model = dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8])
    policy = RowsPolicy(dict(type="dqn", model=model, discount_factor=0.9))
    with collector_of(scripted(5), policy, 2) as collector:
        samples = collector.collect(60, policy_kwargs=EXPLORE)
        assert all(float(s["who"]) == float(s["obs"][0]) for s in samples)
        assert_same_samples(samples, logs_of(collector), 1)


@pytest.mark.parametrize("kind", [ScriptedManager, CountingManager])
@pytest.mark.parametrize("overlap", [1, 3])
@pytest.mark.parametrize("event", ["abnormal", "raise"])
def test_broken_episodes_are_dropped_and_counted(event: str, overlap: int, kind: Any) -> None:
    cfg = {"max_retry": 2, "retry_waiting_time": 0.0}
    env = scripted(3, kind, cfg=cfg, lengths=(6,), truncate=(), events={(1, 3): event})
    with collector_of(env, dqn(nstep=3), overlap) as collector:
        samples = collector.collect(80, policy_kwargs=EXPLORE)
        logs = logs_of(collector)
        assert_same_samples(samples, logs, 3)
        # Samples of the broken episodes that were complete before may have been handed out.
        broken = [s for s in samples if s["obs"][1] == 1 and s["next_obs"][2] > 2]
        assert not broken
        assert 0 < collector.dropped_steps <= 9
        failed = sum(env.total for env in collector._env._envs)
        assert collector.envstep == failed


def test_failure_beyond_the_retries_is_raised_and_no_thread_is_left() -> None:
    before = threading.active_count()
    env = scripted(3, events={(0, 2): "raise"})
    with collector_of(env, overlap=3) as collector, pytest.raises(RuntimeError, match="boom"):
        collector.collect(60, policy_kwargs=EXPLORE)
    assert threading.active_count() == before


# --- on-policy -----------------------------------------------------------------------------------


class Versions:
    """A collect mode whose actions carry the number of the collect that they belong to."""

    def __init__(self) -> None:
        self.version = 0
        self._mode = ppo(20).collect_mode

    @property
    def mode(self) -> Any:
        return self._mode._replace(forward=self.forward, process_transition=self.process)

    def forward(self, obs: ByEnv, **kwargs: Any) -> ByEnv:
        output = self._mode.forward(obs)
        return ByEnv(obs.ids, {**output.stacked, "version": np.full(len(obs.ids), self.version)})

    def process(self, obs: Any, output: Any, step: Any) -> Any:
        return {**self._mode.process_transition(obs, output, step), "version": output["version"]}


@pytest.mark.parametrize("kind", [ScriptedManager, OutOfTurnManager])
@pytest.mark.parametrize("overlap", [1, 3])
def test_on_policy_samples_are_all_of_the_present_policy(kind: Any, overlap: int) -> None:
    versions = Versions()
    env = scripted(4, kind)
    with SampleCollector(dict(overlap=overlap), env=env, policy=versions.mode) as collector:
        for k in range(6):
            versions.version = k
            samples = collector.collect(20)
            assert len(samples) == 20
            assert {int(s["version"]) for s in samples} == {k}
        steps = sum(map(len, logs_of(collector)))
        assert collector.envstep == steps
        if kind is ScriptedManager:  # No step is begun that nobody would want.
            assert (collector.stale_steps, steps) == (0, 120)
        else:
            assert collector.stale_steps > 0


def test_on_policy_steps_are_shared_out_evenly_at_the_end() -> None:
    with collector_of(scripted(4, lengths=(50,), single=True), ppo(6)) as collector:
        samples = collector.collect()
        count = np.bincount([int(s["obs"][0]) for s in samples], minlength=4)
        assert count.sum() == 6
        assert count.max() <= 3


def test_steps_under_way_are_stale_after_reset_policy() -> None:
    policy = dqn()
    with collector_of(scripted(8), policy) as collector:
        collector.collect(4, policy_kwargs=EXPLORE)
        under_way = collector._env.in_flight
        assert under_way
        collector.reset_policy(policy.collect_mode)
        taken = collector.envstep
        samples = collector.collect(60, policy_kwargs={"eps": 0.0})
        assert collector.stale_steps == under_way
        logs = logs_of(collector)
        assert collector.envstep == sum(map(len, logs))
        old = {s["reward"] for log in logs for s in log[:1]}
        assert not old & {float(s["reward"]) for s in samples}
        assert taken < 8


def test_reset_env_counts_what_is_under_way() -> None:
    with collector_of(scripted(4, lengths=(50,))) as collector:
        collector.collect(3, policy_kwargs=EXPLORE)
        collector.reset_env()
        assert collector.envstep == sum(map(len, logs_of(collector)))
        samples = collector.collect(20, policy_kwargs=EXPLORE)
        assert {float(s["obs"][1]) for s in samples} == {1.0}
        same = collector._env
        same.close()
        collector.reset_env(same)  # it is launched again
        assert len(collector.collect(5, policy_kwargs=EXPLORE)) == 5
        collector.reset_env(manager_of(2))
        assert len(collector.collect(5, policy_kwargs=EXPLORE)) == 5


# --- state, threads ------------------------------------------------------------------------------


def test_state_keeps_what_was_under_way() -> None:
    policy = dqn(nstep=3)
    collector = collector_of(scripted(6), policy, 2)
    got: list[Any] = []
    while not collector._env.in_flight:  # A thread may not have acted yet.
        got += collector.collect(11, policy_kwargs=EXPLORE)
        collector._overlapped._threads.wait_idle()
    state = collector.state_dict()
    assert collector._env.in_flight == 0
    assert state["envstep"] == sum(map(len, logs_of(collector)))
    collector.close()
    with collector_of(scripted(6), policy, 2) as other:
        other.load_state_dict(state)
        got += other.collect(50, policy_kwargs=EXPLORE)
        assert_same_samples(got, logs_of(other), 3)
        assert other.envstep == sum(map(len, logs_of(other)))


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("overlap", [1, 4])
def test_policy_that_raises_ends_the_collect_only(kind: Any, overlap: int) -> None:
    before, mode, calls = threading.active_count(), dqn().collect_mode, [0]

    def forward(obs: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 12:
            raise kind("boom")
        return mode.forward(obs, **kwargs)

    env = scripted(6, single=True)
    cfg, failing = dict(overlap=overlap), mode._replace(forward=forward)
    with SampleCollector(cfg, env=env, policy=failing) as collector:
        with pytest.raises(kind, match="boom"):
            collector.collect(100, policy_kwargs=EXPLORE)
        assert threading.active_count() == before
        assert len(collector.collect(100, policy_kwargs=EXPLORE)) == 100
        assert threading.active_count() == before + overlap - 1
        assert collector.envstep == sum(map(len, logs_of(collector)))
    assert threading.active_count() == before


def test_forwards_overlap() -> None:
    """Three forwards must run at once for the barrier to open."""
    mode, barrier, batches = ppo(18).collect_mode, threading.Barrier(3, timeout=20), []

    def forward(obs: Any, **kwargs: Any) -> Any:
        batches.append((len(obs), kwargs))
        if len(obs) == 1:
            barrier.wait()
        return mode.forward(obs)

    env = scripted(6, single=True, lengths=(1000,))
    policy = mode._replace(forward=forward)
    with SampleCollector(dict(overlap=3), env=env, policy=policy) as collector:
        collector.collect(policy_kwargs={"about": "this collect"})
        # On-policy no step is begun in vain: 6 at first, then 12 that come one by one.
        assert batches == [(n, {"about": "this collect"}) for n in [6] + [1] * 12]
        assert len(env.received_in) > 1


def test_auto_overlaps_a_policy_that_waits() -> None:
    mode = dqn().collect_mode

    def forward(obs: Any, **kwargs: Any) -> Any:
        time.sleep(0.002)
        return mode.forward(obs, **kwargs)

    env = scripted(4, single=True)
    with SampleCollector(env=env, policy=mode._replace(forward=forward)) as collector:
        samples = collector.collect(60, policy_kwargs=EXPLORE)
        assert collector._overlapped.threads > 1
        assert_same_samples(samples, logs_of(collector), 1)
        collector.reset_policy(mode)
        collector.collect(60, policy_kwargs=EXPLORE)
        assert collector._overlapped.threads == 1


def test_overlap_setting_is_checked() -> None:
    for wrong in (0, -1, "atuo", 1.5):
        with pytest.raises(ConfigError, match="overlap"):
            SampleCollector(dict(overlap=wrong))
    for kind in (SampleCollector, EpisodeCollector):
        assert kind.default_config().overlap == "auto"
        schema = schema_of(kind)
        assert merge(schema, dict(overlap=4))["overlap"] == 4
        assert merge(schema, dict(overlap="auto"))["overlap"] == "auto"
        with pytest.raises(ConfigError, match="overlap"):
            merge(schema, dict(overlap="atuo"))


# --- whole episodes ------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", [1, 3])
@pytest.mark.parametrize(("n_env", "n_episode"), [(1, 3), (3, 3), (4, 9)])
def test_episodes_are_whole_and_exactly_as_many(n_env: int, n_episode: int, overlap: int) -> None:
    env = scripted(n_env, truncate=(), away=5)
    with collector_of(env, None, overlap, EpisodeCollector) as collector:
        for _ in range(3):
            episodes = collector.collect(n_episode=n_episode, policy_kwargs=EXPLORE)
            assert len(episodes) == n_episode
            assert collector._env.in_flight == 0
            for episode in episodes:
                assert len({(float(s["obs"][0]), float(s["obs"][1])) for s in episode}) == 1
                assert [float(s["obs"][2]) for s in episode] == list(range(len(episode)))
                assert [bool(s["done"]) for s in episode] == [False] * (len(episode) - 1) + [True]
        assert collector.envstep == sum(map(len, logs_of(collector)))


def test_episodes_begin_anew_after_an_interrupted_collect() -> None:
    mode, calls = dqn().collect_mode, [0]

    def forward(obs: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 7:
            raise KeyboardInterrupt
        return mode.forward(obs, **kwargs)

    env = scripted(3, truncate=())
    with EpisodeCollector(env=env, policy=mode._replace(forward=forward)) as collector:
        with pytest.raises(KeyboardInterrupt):
            collector.collect(6, policy_kwargs=EXPLORE)
        for episode in collector.collect(6, policy_kwargs=EXPLORE):
            assert [float(s["obs"][2]) for s in episode] == list(range(len(episode)))


def test_managers_without_recv_cannot_play_whole_episodes_out_of_turn() -> None:
    env = scripted(4, OutOfTurnManager)
    with (
        collector_of(env, kind=EpisodeCollector) as collector,
        pytest.raises(RuntimeError, match="OutOfTurnManager"),
    ):
        collector.collect(8, policy_kwargs=EXPLORE)


def test_long_and_short_episodes_count_alike(tmp_path: Any) -> None:
    makers = [partial(StepLogEnv, i, lengths=(n,), truncate=()) for i, n in enumerate((1, 30))]
    env = ScriptedManager(makers, {}, away=3)
    with BaseSerialEvaluator(
        dict(n_episode=6), env=env, policy=dqn().eval_mode, exp_name=str(tmp_path)
    ) as evaluator:
        for _ in range(2):
            assert list(evaluator.eval().reward) == [1.0] * 3 + [30.0] * 3


# --- envs that are ready -------------------------------------------------------------------------


class SlowResetManager(BaseEnvManager):
    """Env 1 is away after its first episode for a few looks at `ready_obs`."""

    looks = 0

    @property
    def ready_obs(self) -> ByEnv:
        obs = super().ready_obs
        if self._envs[1].episode == 1 and self.looks < 5:
            self.looks += 1
            return ByEnv(obs.ids[:1], obs.stacked[:1])
        return obs


def test_evaluator_waits_for_the_env_that_is_still_wanted(tmp_path: Any) -> None:
    makers = [partial(StepLogEnv, i, lengths=(2,)) for i in range(2)]
    env = SlowResetManager(makers, {})
    mode = dqn().eval_mode
    with BaseSerialEvaluator(
        dict(n_episode=4), env=env, policy=mode, exp_name=str(tmp_path)
    ) as evaluator:
        assert list(evaluator.eval().reward) == [2.0] * 4
    assert env.looks == 5


def test_nothing_that_can_play_is_told() -> None:
    env = manager_of(2, {"episode_num": 1}, lengths=(1,))
    env.launch()
    check_alive(env)
    with pytest.raises(RuntimeError, match="no env can go on"):
        while True:
            obs = await_obs(env)
            env.step(ByEnv(obs.ids, np.zeros(len(obs.ids), dtype=np.int64)))
    env.close()


@pytest.mark.parametrize("overlap", [1, 2])
def test_collector_of_envs_that_are_done_says_so(overlap: int) -> None:
    env = scripted(2, cfg={"episode_num": 1}, lengths=(2,))
    with (
        collector_of(env, overlap=overlap) as collector,
        pytest.raises(RuntimeError, match="DONE"),
    ):
        collector.collect(20, policy_kwargs=EXPLORE)


# --- the real ones -------------------------------------------------------------------------------


def step_log_envs(n: int) -> list[Any]:
    return [partial(StepLogEnv, i, lengths=(4 + i, 1 + i, 6), truncate=()) for i in range(n)]


def rewards(samples: list[Any]) -> list[float]:
    return [float(s["reward"]) for s in samples]


@pytest.mark.parametrize("kind", ["async_subprocess", "thread"])
def test_real_managers_out_of_turn(kind: str, tmp_path: Any) -> None:
    cfg = dict(type=kind)
    with collector_of(create_env_manager(cfg, step_log_envs(4)), dqn(), 2) as collector:
        got: list[Any] = []
        for _ in range(3):
            got += collector.collect(30, policy_kwargs=EXPLORE)
        assert len(set(rewards(got))) == 90
        # No step is missing: those of an env are numbered by its rewards.
        collector.state_dict()
        collector._sampler.make(0)
        rest = collector._sampler.hand_out(None) if n_waiting(collector) else []
        numbers = np.sort(np.array(rewards(got) + rewards(rest)).astype(int))
        assert numbers.size == collector.envstep
        for i in range(4):
            own = numbers[numbers // 1000 == i + 1] % 1000
            assert own.tolist() == list(range(1, len(own) + 1))
    episodes = collector_of(create_env_manager(cfg, step_log_envs(2)), kind=EpisodeCollector)
    with episodes as collector:
        for episode in collector.collect(5, policy_kwargs=EXPLORE):
            assert [float(s["obs"][2]) for s in episode] == list(range(len(episode)))


@pytest.mark.parametrize("nstep", [1, 3])
def test_sync_gives_the_data_of_base(nstep: int) -> None:
    def run(cfg: dict[str, Any]) -> list[Any]:
        torch.manual_seed(0)
        policy = dqn(nstep=nstep)
        policy.rng.bit_generator.state = np.random.default_rng(3).bit_generator.state
        with collector_of(create_env_manager(cfg, step_log_envs(4)), policy) as collector:
            samples = [*collector.collect(30, policy_kwargs=EXPLORE)]
            samples += collector.collect(30, policy_kwargs=EXPLORE)
        return [(*s["obs"].tolist(), float(s["reward"]), int(s["action"])) for s in samples]

    expected = run(dict(type="base"))
    assert run(dict(type="subprocess", envs_per_worker=2)) == expected
    assert run(dict(type="subprocess", envs_per_worker=1, copy_on_get=False)) == expected


def test_evaluator_with_a_real_manager(tmp_path: Any) -> None:
    env = create_env_manager(dict(type="async_subprocess", envs_per_worker=1), step_log_envs(2))
    with BaseSerialEvaluator(
        dict(n_episode=4), env=env, policy=dqn().eval_mode, exp_name=str(tmp_path)
    ) as evaluator:
        assert list(evaluator.eval().reward) == [1.0, 6.0, 2.0, 6.0]
