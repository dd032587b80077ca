"""Rewards that are vectors: samples carry the vector, returns are sums over it."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import BaseEnvManager, BaseEnvTimestep, create_env_manager
from ding.utils.batch import Rows
from ding.worker import BaseSerialEvaluator, EpisodeCollector, SampleCollector
from worker.async_fakes import ScriptedManager
from worker.fakes import StepLogEnv, dqn
from worker.test_collector import logs_of


class VectorRewardEnv(StepLogEnv):
    """The reward of `StepLogEnv`, its half and one."""

    _reward_space = gym.spaces.Box(-np.inf, np.inf, (3,), dtype=np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        step = super().step(action)
        vector = np.array([step.reward, step.reward / 2, 1.0], dtype=np.float32)
        self.log[-1]["vector"] = vector
        step.info.pop("eval_episode_return", None)
        return step._replace(reward=vector)


def makers(n: int) -> list[Any]:
    return [partial(VectorRewardEnv, i, lengths=(3 + i, 2)) for i in range(n)]


def returns_of(log: list[dict[str, Any]]) -> list[float]:
    """Returns of the finished episodes of one env."""
    sums: dict[int, float] = {}
    for step in log:
        sums[step["episode"]] = sums.get(step["episode"], 0.0) + float(step["vector"].sum())
    finished = {step["episode"] for step in log if step["done"]}
    return [total for episode, total in sums.items() if episode in finished]


@pytest.mark.parametrize("manager", [BaseEnvManager, ScriptedManager])
def test_samples_carry_the_vector_and_returns_its_sum(manager: Any, tmp_path: Any) -> None:
    env = manager(makers(3), {})
    mode = dqn().collect_mode
    with SampleCollector(env=env, policy=mode, exp_name=str(tmp_path)) as collector:
        samples = collector.collect(n_sample=60, policy_kwargs={"eps": 0.5})
        logs = logs_of(collector)
        by_obs = {tuple(s["obs"].tolist()): s["vector"] for log in logs for s in log}
        assert samples.columns["reward"].shape == (60, 3)
        for obs, reward in zip(samples.columns["obs"], samples.columns["reward"], strict=True):
            assert np.array_equal(reward, by_obs[tuple(obs.tolist())])
        collector.state_dict()  # takes in what is under way
        returns = [value for log in logs for value in returns_of(log)]
        assert collector.episode_count == len(returns) > 3
        assert collector.recent_return == pytest.approx(np.mean(returns))
        assert len(collector.last_returns(3)) == 3
        assert sorted(collector.last_returns(100)) == pytest.approx(sorted(returns))


@pytest.mark.parametrize("kind", ["base", "subprocess"])
def test_episodes_carry_the_vector(kind: str, tmp_path: Any) -> None:
    env = create_env_manager(dict(type=kind), makers(2))
    with EpisodeCollector(env=env, policy=dqn().collect_mode, exp_name=str(tmp_path)) as collector:
        for episode in collector.collect(n_episode=4, policy_kwargs={"eps": 0.5}):
            reward = episode.columns["reward"]
            assert np.array_equal(reward[:, 1:], np.stack([reward[:, 0] / 2, reward[:, 0] ** 0], 1))


@pytest.mark.parametrize("manager", [BaseEnvManager, ScriptedManager])
def test_evaluation_sums_over_the_vector(manager: Any, tmp_path: Any) -> None:
    env = manager(makers(2), {})
    with BaseSerialEvaluator(
        dict(n_episode=4), env=env, policy=dqn().eval_mode, exp_name=str(tmp_path)
    ) as evaluator:
        result = evaluator.eval()
        expected = [value for log in logs_of(evaluator) for value in returns_of(log)[:2]]
        assert list(result.reward) == pytest.approx(expected)


def test_train_samples_of_episodes_are_columns(monkeypatch: Any, tmp_path: Any) -> None:
    """One dict of tensors a step costs more than playing it: nobody may look at rows."""

    def looked_at(self: Rows) -> None:
        raise AssertionError("rows were made")

    monkeypatch.setattr(Rows, "_fill", looked_at)
    env, cfg = BaseEnvManager(makers(2), {}), dict(get_train_sample=True)
    mode = dqn(nstep=3).collect_mode
    with EpisodeCollector(cfg, env=env, policy=mode, exp_name=str(tmp_path)) as collector:
        samples = collector.collect(n_episode=5, policy_kwargs={"eps": 0.5})
        assert isinstance(samples, Rows)
        assert len(samples) == collector.envstep
        assert {"obs", "discount", "collect_iter"} <= samples.columns.keys()
