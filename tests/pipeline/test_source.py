"""Source: samples of the policy, and random ones in chunks."""

from __future__ import annotations

import tracemalloc
from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep
from ding.pipeline.source import CollectorSource
from ding.policy import DQNPolicy
from ding.worker import NaiveReplayBuffer, SampleCollector

PIXELS = (4, 40, 40)


class Frames(BaseEnv):
    """Large observations, episodes of 50 steps."""

    _observation_space = gym.spaces.Box(0, 255, PIXELS, dtype=np.uint8)
    _action_space = gym.spaces.Discrete(3)
    _reward_space = gym.spaces.Box(0, 1, (1,), dtype=np.float32)

    def __init__(self) -> None:
        super().__init__({})

    def _obs(self) -> np.ndarray:
        obs = np.zeros(PIXELS, dtype=np.uint8)
        obs[:, 0, 0] = range(self.steps, self.steps + 4)
        return obs

    def reset(self) -> np.ndarray:
        self.steps = 0
        return self._obs()

    def step(self, action: Any) -> BaseEnvTimestep:
        self.steps += 1
        return BaseEnvTimestep(self._obs(), 1.0, self.steps == 50, {})

    def close(self) -> None:
        pass


def source(n_env: int = 4) -> tuple[CollectorSource, Any]:
    model = dict(obs_shape=list(PIXELS), action_shape=3, encoder_hidden_size_list=[4, 4, 4, 8])
    policy = DQNPolicy(dict(type="dqn", model=model, collect=dict(n_sample=8)))
    env = BaseEnvManager([Frames] * n_env, {})
    collector = SampleCollector(env=env, policy=policy.collect_mode)
    return CollectorSource(collector, policy.collect_mode), collector


def test_warm_up_takes_memory_for_a_chunk_not_for_all() -> None:
    made, collector = source()
    buffer, other = (NaiveReplayBuffer(dict(replay_buffer_size=1000)) for _ in range(2))
    n = largest = 0
    with collector:
        other.push(made.next_random(8).samples)  # What the first use imports does not count.
        tracemalloc.start()
        for chunk in made.warm_up(1000):
            buffer.push(chunk.samples)
            n += len(chunk.samples)
            largest = max(largest, len(chunk.samples))
            assert chunk.env_steps == len(chunk.samples)
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n == buffer.count() == 1000
    assert largest == 256
    buffer.close()
    other.close()
    row = 2 * np.prod(PIXELS)
    assert peak < (1000 + 3 * 256) * row  # the buffer, and a few times a chunk


def test_the_policy_acts_again_after_the_warm_up() -> None:
    made, collector = source()
    with collector:
        random = [s["action"] for chunk in made.warm_up(64) for s in chunk.samples]
        assert {int(a) for a in random} == {0, 1, 2}
        collected = made.next(5, {"eps": 0.0}, n_sample=40)
    assert len({int(s["action"]) for s in collected.samples}) <= 2
    assert {int(s["collect_iter"]) for s in collected.samples} == {5}
    assert collected.env_steps == 40


def test_returns_are_those_of_the_episodes_that_ended_meanwhile() -> None:
    made, collector = source()
    with collector:
        returns = [made.next(0, {"eps": 1.0}, n_sample=4 * n).returns for n in (49, 1, 120)]
    assert returns == [[], [50.0] * 4, [50.0] * 8]
