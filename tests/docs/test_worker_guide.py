"""The guides' snippets about collectors, buffers, evaluators and learners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.policy import CollectMode, DQNPolicy, RandomPolicy
from ding.utils.batch import ByEnv, stacked_of
from ding.worker import (
    BaseLearner,
    BaseSerialEvaluator,
    EpisodeCollector,
    LearnerHook,
    NaiveBuffer,
    NaiveReplayBuffer,
    SampleCollector,
    VectorEvalMonitor,
)

from .conftest import cartpoles


def test_collect_samples_and_episodes(cfg: Any) -> None:
    dqn_policy = DQNPolicy(cfg.policy)
    sample_collector = SampleCollector(
        cfg.policy.collect.collector, cartpoles(), dqn_policy.collect_mode
    )
    episode_collector = EpisodeCollector(
        cfg.policy.collect.collector, cartpoles(), dqn_policy.collect_mode
    )
    data = sample_collector.collect(n_sample=100)
    assert isinstance(data, list) and len(data) == 100
    assert all(isinstance(item, dict) for item in data)
    episodes = episode_collector.collect(n_episode=10)
    assert isinstance(episodes, list) and len(episodes) == 10
    assert all(bool(episode[-1]["done"]) for episode in episodes)
    sample_collector.close()
    episode_collector.close()


def expert_mode(mode: CollectMode) -> CollectMode:
    """Pushes the cart to where the pole falls."""

    def forward(data: Any, **kwargs: Any) -> ByEnv:
        env_id, obs = stacked_of(data)
        return ByEnv(env_id, {"action": (obs[:, 2] + obs[:, 3] > 0).astype(np.int64)})

    return mode._replace(forward=forward)


def test_swap_policies_while_collecting(cfg: Any) -> None:
    dqn_policy, env = DQNPolicy(cfg.policy), cartpoles()
    random_policy = RandomPolicy(env.action_space, like=dqn_policy, seed=0)
    expert = expert_mode(dqn_policy.collect_mode)
    replay_buffer = NaiveBuffer(cfg.policy.other.replay_buffer)
    with SampleCollector(cfg.policy.collect.collector, env, dqn_policy.collect_mode) as collector:
        collector.reset_policy(random_policy.collect_mode)
        random_data = collector.collect(n_sample=400)
        replay_buffer.push(random_data)
        random_length = 400 / sum(bool(row["done"]) for row in random_data)
        for _ in range(2):
            collector.reset_policy(dqn_policy.collect_mode)
            data = collector.collect(n_sample=100, policy_kwargs={"eps": 0.5})
            collector.reset_policy(expert)
            expert_data = collector.collect(n_sample=200)
            replay_buffer.push(data)
            replay_buffer.push(expert_data)
            batch = replay_buffer.sample(64)
            assert batch is not None and np.isfinite(
                float(dqn_policy.learn_mode.forward(batch)["total_loss"])
            )
    assert replay_buffer.count() == 400 + 2 * (100 + 200)
    assert random_length < 40
    assert sum(bool(row["done"]) for row in expert_data) < 200 / random_length


def test_reset_env_and_policy_together(cfg: Any) -> None:
    policy = DQNPolicy(cfg.policy)
    with SampleCollector(cfg.policy.collect.collector) as collector:
        collector.reset(policy.collect_mode, cartpoles(2))
        assert len(collector.collect(n_sample=6, policy_kwargs={"eps": 1.0})) == 6


def test_buffer_takes_anything() -> None:
    buffer_ = NaiveReplayBuffer({"replay_buffer_size": 10})
    for _ in range(12):
        buffer_.push({"data": "placeholder"})
    assert buffer_.count() == 10
    data = buffer_.sample(4)
    assert data is not None and [dict(row) for row in data] == [{"data": "placeholder"}] * 4


def test_evaluate_ten_episodes(cfg: Any) -> None:
    dqn_policy = DQNPolicy(cfg.policy)
    learner = BaseLearner(cfg.policy.learn.learner, dqn_policy.learn_mode)
    with BaseSerialEvaluator(
        cfg.policy.eval.evaluator, cartpoles(5), dqn_policy.eval_mode
    ) as evaluator:
        stop, reward = evaluator.eval(learner.save_checkpoint, learner.train_iter, 0, n_episode=10)
        assert isinstance(reward, list) and len(reward) == 10
        assert stop is False
        assert (learner.ckpt_dir / "ckpt_best.pth.tar").is_file()
    learner.close()


def test_evaluation_in_the_training_loop(cfg: Any) -> None:
    cfg.policy.eval.evaluator.eval_freq = 4
    policy, name = DQNPolicy(cfg.policy), "loop"
    learner = BaseLearner(cfg.policy.learn.learner, policy.learn_mode, exp_name=name)
    collector = SampleCollector(
        cfg.policy.collect.collector, cartpoles(), policy.collect_mode, exp_name=name
    )
    evaluator = BaseSerialEvaluator(
        cfg.policy.eval.evaluator, cartpoles(5), policy.eval_mode, exp_name=name
    )
    evaluated = []
    for _ in range(10):
        if evaluator.should_eval(learner.train_iter):
            evaluated.append(learner.train_iter)
            stop, _ = evaluator.eval(learner.save_checkpoint, learner.train_iter, collector.envstep)
            if stop:
                break
        collect_kwargs = policy.command_mode.get_setting_collect({"envstep": collector.envstep})
        new_data = collector.collect(train_iter=learner.train_iter, policy_kwargs=collect_kwargs)
        learner.train(new_data, collector.envstep)
    assert evaluated == [0, 4, 8]
    for worker in (learner, collector, evaluator):
        worker.close()


def test_episodes_are_shared_out_evenly() -> None:
    monitor = VectorEvalMonitor(env_num=5, n_episode=12)
    assert monitor.each_env_episode == [3, 3, 2, 2, 2]
    for env_id, count in enumerate(monitor.each_env_episode):
        for _ in range(count):
            monitor.update_reward(env_id, 1.0)
    assert monitor.is_finished()
    assert monitor.get_current_episode() == 12 and sum(monitor.get_episode_reward()) == 12.0


class CountHook(LearnerHook):
    """Writes down where it was called."""

    calls: list[tuple[str, int]]

    def __call__(self, engine: Any) -> None:
        self.calls.append((self.name, engine.train_iter))


@pytest.mark.parametrize("first", ["a", "b"])
def test_hooks_run_at_their_position_by_priority(cfg: Any, first: str) -> None:
    policy = DQNPolicy(cfg.policy)
    calls: list[tuple[str, int]] = []
    with (
        BaseLearner(cfg.policy.learn.learner, policy.learn_mode) as learner,
        SampleCollector(
            cfg.policy.collect.collector, cartpoles(), policy.collect_mode
        ) as collector,
    ):
        for name in ("a", "b"):
            hook = CountHook(name, priority=10 if name == first else 20, position="before_iter")
            hook.calls = calls
            learner.register_hook(hook)
        data = collector.collect(n_sample=64)
        learner.train(data, collector.envstep)
        learner.train(data, collector.envstep)
    second = "b" if first == "a" else "a"
    assert calls == [(first, 0), (second, 0), (first, 1), (second, 1)]


def test_start_trains_on_a_source_and_calls_the_run_hooks(cfg: Any) -> None:
    policy = DQNPolicy(cfg.policy)
    calls: list[tuple[str, int]] = []
    with SampleCollector(
        cfg.policy.collect.collector, cartpoles(), policy.collect_mode
    ) as collector:
        batches = [collector.collect(n_sample=64) for _ in range(3)]
    with BaseLearner(cfg.policy.learn.learner, policy.learn_mode) as learner:
        for position in ("before_run", "after_run"):
            hook = CountHook(position, position=position)
            hook.calls = calls
            learner.register_hook(hook)
        learner.setup_dataloader(batches)
        learner.start()
        assert (learner.ckpt_dir / "iteration_3.pth.tar").is_file()
    assert calls == [("before_run", 0), ("after_run", 3)]
