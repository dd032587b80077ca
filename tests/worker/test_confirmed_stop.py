"""Evaluation starts belong to one run seed; a stop is confirmed from other starts."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from ding.envs import BaseEnvManager, DingEnvWrapper
from ding.envs.manager.slot import evaluation_seeds
from ding.worker import BaseSerialEvaluator


class Lottery(gym.Env[Any, Any]):
    """One step, worth the seed of its reset modulo 1000."""

    observation_space = gym.spaces.Box(0, 1, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.worth = float(seed % 1000)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(1, np.float32), self.worth, True, False, {}


class Policy:
    def forward(self, obs: Any) -> Any:
        return {i: {"action": np.int64(0)} for i in obs}

    def reset(self, data_id: Any = None) -> None: ...


def evaluator(stop_value: float) -> BaseSerialEvaluator:
    env = BaseEnvManager([lambda: DingEnvWrapper(Lottery) for _ in range(4)], {})
    made = BaseSerialEvaluator(dict(stop_value=stop_value, n_episode=4), env, Policy())
    made.seed(7)
    return made


def worths(again: int) -> list[float]:
    return [float(seed % 1000) for seed in evaluation_seeds(7, 4, again)]


def test_no_two_run_seeds_share_a_start() -> None:
    starts = [seed for run in range(20) for seed in evaluation_seeds(run, 100)]
    assert len(set(starts)) == len(starts)
    assert set(evaluation_seeds(0, 100)).isdisjoint(evaluation_seeds(0, 100, again=1))


def test_every_evaluation_has_the_same_starts() -> None:
    played = evaluator(1e9)
    for train_iter in (0, 5, 10):
        assert list(played.eval(None, train_iter).reward) == worths(0)
    played.close()


def test_a_stop_that_other_starts_do_not_confirm_is_none() -> None:
    usual = float(np.mean(worths(0)))
    confirmed = {again: float(np.mean(worths(again))) for again in range(2, 40)}
    worse = next(again for again, mean in confirmed.items() if mean < usual)
    better = next(again for again, mean in confirmed.items() if mean > usual)
    played = evaluator(usual)
    found = played.eval(None, worse - 1)
    assert not found.stop and list(found.reward) == worths(worse)
    found = played.eval(None, better - 1)
    assert found.stop and list(found.reward) == worths(better)
    assert list(played.eval(None, 0).reward) == worths(0)  # the usual starts are back
    played.close()
