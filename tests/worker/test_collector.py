from __future__ import annotations

import logging
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from ding.policy import PolicyFactory, PPOPolicy
from ding.utils.errors import ConfigError
from ding.worker import EpisodeCollector, SampleCollector, create_serial_collector
from ding.worker.collector.waiting_envs import only_active
from worker.fakes import BackwardsPolicy, OldStylePolicy, RowsPolicy, dqn, manager_of

GAMMA = 0.9


def collector_of(n_env: int, policy: Any = None, tmp_path: Any = ".", **kwargs: Any) -> Any:
    env = kwargs.pop("env", None) or manager_of(n_env, **kwargs)
    mode = policy.collect_mode if policy is not None else dqn().collect_mode
    return SampleCollector(env=env, policy=mode, exp_name=str(tmp_path))


def logs_of(collector: Any) -> list[list[dict[str, Any]]]:
    return [env.log for env in collector._env._envs]


def brute_force(log: list[dict[str, Any]], nstep: int) -> dict[float, dict[str, Any]]:
    """n-step samples of one env's log by a plain loop, by the reward of their first step."""
    samples = {}
    for t, first in enumerate(log):
        reward, used = 0.0, 0
        for k in range(nstep):
            if t + k >= len(log):
                used = 0
                break
            reward += GAMMA**k * log[t + k]["reward"]
            used, last = k + 1, log[t + k]
            if last["done"]:
                break
        if not used:
            continue  # its steps are not there yet
        terminated = last["done"] and not last["truncated"]
        samples[first["reward"]] = {
            "obs": first["obs"],
            "action": first["action"],
            "reward": reward,
            "next_obs": last["next_obs"],
            "discount": 0.0 if terminated else GAMMA**used,
            "done": terminated,
        }
    return samples


def first_reward(log: list[dict[str, Any]]) -> dict[tuple[float, ...], float]:
    return {tuple(step["obs"].tolist()): step["reward"] for step in log}


def assert_same_samples(got: list[Any], logs: list[list[dict[str, Any]]], nstep: int) -> None:
    wanted = {key: s for log in logs for key, s in brute_force(log, nstep).items()}
    keys = {obs: reward for log in logs for obs, reward in first_reward(log).items()}
    seen = []
    for sample in got:
        key = keys[tuple(sample["obs"].tolist())]
        seen.append(key)
        reference = wanted[key]
        for name in ("obs", "action", "next_obs", "done"):
            assert np.array_equal(np.asarray(sample[name]), reference[name]), name
        assert float(sample["reward"]) == pytest.approx(reference["reward"], rel=1e-6)
        assert float(sample["discount"]) == pytest.approx(reference["discount"], rel=1e-6)
    assert len(set(seen)) == len(seen), "a sample came twice"


@pytest.mark.parametrize("nstep", [1, 3, 5])
@pytest.mark.parametrize("n_env", [1, 3, 8])
@pytest.mark.parametrize("n_sample", [1, 8, 20])
def test_off_policy_samples_are_those_of_the_raw_steps(
    n_env: int, nstep: int, n_sample: int
) -> None:
    with collector_of(n_env, dqn(nstep=nstep)) as collector:
        got: list[Any] = []
        for k in range(60 // n_sample + 2):
            part = collector.collect(n_sample=n_sample, train_iter=k, policy_kwargs={"eps": 0.5})
            assert isinstance(part, list)
            assert len(part) == n_sample
            assert {int(sample["collect_iter"]) for sample in part} <= set(range(k + 1))
            got += part
        logs = logs_of(collector)
        assert collector.envstep == sum(map(len, logs))
        assert_same_samples(got, logs, nstep)
        # Nothing is lost: what has not come yet is waiting in the collector.
        ready = sum(len(brute_force(log, nstep)) for log in logs)
        assert len(got) + collector._sampler.available == ready


@pytest.mark.parametrize("nstep", [1, 3])
def test_only_as_many_env_steps_as_needed(nstep: int) -> None:
    with collector_of(4, dqn(nstep=nstep), lengths=(50,)) as collector:
        collector.collect(n_sample=8)
        assert collector.envstep == 8 + 4 * (nstep - 1)
        collector.collect(n_sample=8)
        assert collector.envstep == 16 + 4 * (nstep - 1)


def test_default_n_sample_is_the_policys() -> None:
    with collector_of(2, dqn(n_sample=6)) as collector:
        assert len(collector.collect()) == 6


def test_drop_extra_false_hands_out_everything() -> None:
    with collector_of(8) as collector:
        assert len(collector.collect(n_sample=3, drop_extra=False)) == 8
        assert collector._sampler.available == 0


def ppo(n_sample: int = 8) -> PPOPolicy:
    model = dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8])
    learn = dict(batch_size=4, epoch_per_collect=1)
    return PPOPolicy(dict(type="ppo", model=model, learn=learn, collect=dict(n_sample=n_sample)))


def test_on_policy_leftovers_are_dropped(caplog: Any) -> None:
    with collector_of(4, ppo(6)) as collector:
        with caplog.at_level(logging.WARNING):
            first = collector.collect()
            second = collector.collect()
        assert len(first) == len(second) == 6
        assert collector.envstep == 16
        assert sum("no multiple" in record.message for record in caplog.records) == 1
        old = {float(sample["reward"]) for sample in first}
        assert not old & {float(sample["reward"]) for sample in second}
        # The second collect holds steps of the second half only.
        half = {step["reward"] for log in logs_of(collector) for step in log[2:]}
        assert {float(sample["reward"]) for sample in second} <= half


def test_process_rows_policy_sees_one_env_at_a_time() -> None:
    model = dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8])
    policy = RowsPolicy(dict(type="dqn", model=model, discount_factor=GAMMA))
    with collector_of(3, policy) as collector:
        samples = collector.collect(n_sample=30)
        assert all(float(sample["who"]) == float(sample["obs"][0]) for sample in samples)
        assert_same_samples(samples, logs_of(collector), 1)


def test_old_style_policy_with_plain_dicts() -> None:
    model = dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8])
    policy = OldStylePolicy(dict(type="dqn", model=model, nstep=3, discount_factor=GAMMA))
    with collector_of(3, policy) as collector:
        samples = collector.collect(n_sample=30)
        assert_same_samples(samples, logs_of(collector), 3)
        for sample in samples:
            assert isinstance(sample["logit"], torch.Tensor)
            assert int(sample["logit"].argmax()) == int(sample["action"])


def test_policy_that_answers_in_another_order() -> None:
    model = dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8])
    policy = BackwardsPolicy(dict(type="dqn", model=model, nstep=3, discount_factor=GAMMA))
    with collector_of(3, policy) as collector:
        samples = collector.collect(n_sample=40)
        assert_same_samples(samples, logs_of(collector), 3)
        assert all(int(s["action"]) == int(s["obs"][0]) % 2 for s in samples)


def test_policy_that_forgets_an_env_is_told_so() -> None:
    policy = dqn()
    mode = policy.collect_mode._replace(forward=lambda data, **kw: {0: {"action": np.int64(0)}})
    with (
        SampleCollector(env=manager_of(2), policy=mode) as collector,
        pytest.raises(RuntimeError, match=r"asked for actions of envs \[0, 1\]"),
    ):
        collector.collect(n_sample=4)


def test_random_policy_stores_what_the_policy_would() -> None:
    policy = dqn()
    with collector_of(3, policy) as collector:
        random = PolicyFactory.get_random_policy(policy.collect_mode, gym.spaces.Discrete(2))
        collector.reset_policy(random)
        samples = collector.collect(n_sample=60, random_collect=True)
        assert {int(s["action"]) for s in samples} == {0, 1}
        assert_same_samples(samples, logs_of(collector), 1)
        assert collector.envstep == 60


def test_random_collect_without_recording_leaves_the_counter() -> None:
    with collector_of(2) as collector:
        collector.collect(n_sample=8, random_collect=True, record_random_collect=False)
        assert collector.envstep == 0
        collector.collect(n_sample=8)
        assert collector.envstep == 8


def test_reset_policy_drops_what_was_not_handed_out() -> None:
    policy = dqn(nstep=3)
    with collector_of(4, policy) as collector:
        collector.collect(n_sample=5)
        before = {step["reward"] for log in logs_of(collector) for step in log}
        collector.reset_policy(policy.collect_mode)
        samples = collector.collect(n_sample=20)
        keys = {obs: r for log in logs_of(collector) for obs, r in first_reward(log).items()}
        assert not before & {keys[tuple(s["obs"].tolist())] for s in samples}


def test_reset_env_begins_new_episodes_and_takes_another_manager() -> None:
    with collector_of(2, dqn(nstep=3), lengths=(50,)) as collector:
        collector.collect(n_sample=6)
        collector.reset_env()
        samples = collector.collect(n_sample=4)
        assert {float(s["obs"][1]) for s in samples} == {1.0}
        assert min(float(s["obs"][2]) for s in samples) == 0.0
        other = manager_of(5)
        collector.reset(env=other)
        assert len(collector.collect(n_sample=20)) == 20
        assert_same_samples(collector.collect(n_sample=20), logs_of(collector), 3)


@pytest.mark.parametrize("nstep", [1, 3])
def test_env_reported_abnormal_step_drops_its_trajectory(nstep: int, tmp_path: Any) -> None:
    events = {(1, 2): "abnormal"}
    policy = dqn(nstep=nstep)
    env = manager_of(2, lengths=(4,), truncate=(), events=events)
    with collector_of(2, policy, tmp_path, env=env) as collector:
        samples = collector.collect(n_sample=60)
        broken = {(float(s["obs"][1]), float(s["next_obs"][2])) for s in samples}
        assert not any(episode == 1.0 and step >= 2 for episode, step in broken)
        for log in logs_of(collector):
            assert log[-1]["episode"] >= 2
        assert collector.dropped_steps >= 2
        assert collector.envstep == sum(map(len, logs_of(collector)))


@pytest.mark.parametrize("n_env", [1, 3])
def test_failing_env_drops_its_episode_and_goes_on(n_env: int, tmp_path: Any) -> None:
    cfg = {"max_retry": 2, "retry_waiting_time": 0.0}
    env = manager_of(n_env, cfg, lengths=(4,), events={(1, 3): "raise"})
    with collector_of(n_env, dqn(nstep=3), tmp_path, env=env) as collector:
        samples = collector.collect(n_sample=50)
        assert collector.dropped_steps > 0
        assert not any(float(s["obs"][1]) == 1 and float(s["next_obs"][2]) > 2 for s in samples)
        assert any(float(s["obs"][1]) == 2 for s in samples)


def test_failing_env_without_retry_raises_its_error() -> None:
    with (
        collector_of(2, events={(0, 2): "raise"}) as collector,
        pytest.raises(RuntimeError, match="boom"),
    ):
        collector.collect(n_sample=20)


def test_state_continues_exactly() -> None:
    def run(split: bool) -> list[tuple[float, ...]]:
        np.random.seed(0)
        torch.manual_seed(0)
        policy = dqn(nstep=3)
        collector = collector_of(3, policy)
        got = list(collector.collect(n_sample=10))
        if split:
            state = collector.state_dict()
            collector.close()
            other = collector_of(3, policy)
            other.load_state_dict(state)
            collector = other
        got += list(collector.collect(n_sample=25))
        collector.close()
        return [(*s["obs"].tolist(), float(s["reward"]), float(s["discount"])) for s in got]

    assert run(split=True) == run(split=False)


@pytest.mark.parametrize("kind", [SampleCollector, EpisodeCollector])
def test_misuse_is_told_clearly(kind: Any) -> None:
    policy = dqn(n_sample=None)
    with pytest.raises(RuntimeError, match="env"):
        kind(policy=policy.collect_mode)
    with pytest.raises(RuntimeError, match="env"):
        kind().collect(1)
    with pytest.raises(RuntimeError, match="env"):
        kind().reset_env()
    with kind(env=manager_of(2)) as collector:
        with pytest.raises(RuntimeError, match="policy"):
            collector.collect(2)
        with pytest.raises(RuntimeError, match="policy"):
            collector.reset_policy()
        with pytest.raises(TypeError, match="collect_mode"):
            collector.reset_policy(policy)
        collector.reset_policy(policy.collect_mode)
        with pytest.raises(RuntimeError, match="how many"):
            collector.collect()
        with pytest.raises((ConfigError, ValueError), match="0"):
            collector.collect(0)


# --- whole episodes ------------------------------------------------------------------------------


def episode_collector(n_env: int, policy: Any = None, **cfg: Any) -> EpisodeCollector:
    mode = (policy or dqn()).collect_mode
    return EpisodeCollector(cfg, env=manager_of(n_env, truncate=()), policy=mode)


@pytest.mark.parametrize(("n_env", "n_episode"), [(1, 3), (3, 3), (3, 8)])
def test_episodes_are_whole_and_exactly_as_many(n_env: int, n_episode: int) -> None:
    with episode_collector(n_env) as collector:
        for _ in range(2):
            episodes = collector.collect(n_episode=n_episode)
            assert len(episodes) == n_episode
            for episode in episodes:
                assert isinstance(episode, list)
                assert [float(s["obs"][2]) for s in episode] == list(range(len(episode)))
                assert [bool(s["done"]) for s in episode] == [False] * (len(episode) - 1) + [True]
        assert collector.envstep == sum(map(len, logs_of(collector)))


def test_episodes_are_not_biased_to_short_ones() -> None:
    """Env 0 has episodes of 1 step, env 1 of 40: half-and-half when two are asked for."""
    env = manager_of(2, lengths=(1,), truncate=())
    env._env_fn[1] = lambda: type(env._env_fn[0]())(1, lengths=(40,), truncate=())
    with EpisodeCollector(env=env, policy=dqn().collect_mode) as collector:
        lengths = sorted(len(e) for e in collector.collect(n_episode=2))
        assert lengths == [1, 40]
        # An episode that was begun is always played to its end and counted.
        assert 40 in [len(e) for e in collector.collect(n_episode=5)]


def test_episode_collector_gives_train_samples_on_request() -> None:
    with episode_collector(2, dqn(nstep=3), get_train_sample=True) as collector:
        samples = collector.collect(n_episode=6)
        assert_same_samples(samples, logs_of(collector), 3)
        assert all("discount" in sample for sample in samples)


def test_too_few_episodes_are_refused() -> None:
    with episode_collector(3) as collector, pytest.raises(ValueError, match="n_episode = 2"):
        collector.collect(n_episode=2)


def test_create_serial_collector_by_type() -> None:
    collector = create_serial_collector({"type": "episode"})
    assert isinstance(collector, EpisodeCollector)


def test_only_active_keeps_order() -> None:
    env = manager_of(3)
    env.launch()
    obs = only_active(env.ready_obs, np.array([True, False, True]))
    assert list(obs) == [0, 2]
    assert obs.stacked[:, 0].tolist() == [0.0, 2.0]
    env.close()


def test_traj_len_inf_hands_out_whole_episodes_only() -> None:
    policy = dqn(traj_len_inf=True)
    with collector_of(2, policy, lengths=(5,), truncate=()) as collector:
        got = [*collector.collect(n_sample=4), *collector.collect(n_sample=16)]
        assert_same_samples(got, logs_of(collector), 1)
        n = len(got) + collector._sampler.available
        finished = sum(
            sum(s["episode"] < log[-1]["episode"] or log[-1]["done"] for s in log)
            for log in logs_of(collector)
        )
        assert n == finished
