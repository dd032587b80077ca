from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import AgentsSpace, BaseEnv, BaseEnvManager, BaseEnvTimestep, DingEnvWrapper
from ding.utils.errors import ConfigError
from ding.worker import BaseSerialEvaluator, VectorEvalMonitor, create_serial_evaluator
from worker.fakes import StepLogEnv, dqn


def test_shares() -> None:
    assert VectorEvalMonitor(5, 12).each_env_episode == [3, 3, 2, 2, 2]
    assert VectorEvalMonitor(3, 3).each_env_episode == [1, 1, 1]
    with pytest.raises(ValueError, match="n_episode = 2"):
        VectorEvalMonitor(3, 2)


def test_monitor() -> None:
    monitor = VectorEvalMonitor(2, 3)
    monitor.update_reward(0, 1.0)
    monitor.update_reward(1, np.array([2.0]))
    assert not monitor.is_finished()
    assert monitor.is_env_finished(1)
    monitor.update_reward(0, 3.0)
    monitor.update_info(0, {"length": 4})
    assert monitor.is_finished()
    assert monitor.get_current_episode() == 3
    assert monitor.get_latest_reward(0) == 3.0
    assert monitor.get_episode_reward() == monitor.get_episode_return() == [1.0, 3.0, 2.0]
    assert monitor.get_episode_info() == [{"length": 4}]


class WinEnv(StepLogEnv):
    def step(self, action: Any) -> BaseEnvTimestep:
        step = super().step(action)
        if step.done:
            step.info["win"] = self.env == 0
        return step


def evaluator_of(tmp_path: Any, kind: Any = StepLogEnv, **cfg: Any) -> BaseSerialEvaluator:
    makers = [partial(kind, i, lengths=(n,)) for i, n in enumerate((2, 10))]
    env = BaseEnvManager(makers, {})
    policy = dqn().eval_mode
    return BaseSerialEvaluator(cfg, env=env, policy=policy, exp_name=str(tmp_path))


def test_short_episodes_do_not_bias_the_mean(tmp_path: Any) -> None:
    with evaluator_of(tmp_path, n_episode=4) as evaluator:
        result = evaluator.eval()
    assert sorted(result.reward) == [2.0, 2.0, 10.0, 10.0]
    assert isinstance(result.reward, list)
    assert result.reward["eval_episode_return"] == list(result.reward)  # type: ignore[call-overload]
    assert result.reward["length"] == [2, 2, 10, 10]  # type: ignore[call-overload]
    stop, reward = result
    assert stop is False
    assert reward[0] == 2.0


@pytest.mark.parametrize(
    ("metric", "value", "stops"),
    [
        ("return", 6.0, True),
        ("return", 6.1, False),
        ("win_rate", 0.5, True),
        ("win_rate", 0.6, False),
        ("unit_step_reward", 1.0, True),
        ("unit_step_reward", 1.1, False),
    ],
)
def test_stop(metric: str, value: float, stops: bool, tmp_path: Any) -> None:
    cfg = dict(stop_metric=metric, stop_value=value, n_episode=2)
    with evaluator_of(tmp_path, WinEnv, **cfg) as evaluator:
        assert evaluator.eval(train_iter=5).stop is stops
        assert evaluator.eval(train_iter=0).stop is False


def test_win_rate_needs_wins(tmp_path: Any) -> None:
    with (
        evaluator_of(tmp_path, stop_metric="win_rate", n_episode=2) as evaluator,
        pytest.raises(ConfigError, match="'win'"),
    ):
        evaluator.eval()


def test_should_eval(tmp_path: Any) -> None:
    with evaluator_of(tmp_path, eval_freq=10) as evaluator:
        asked = [0, 0, 5, 9, 10, 10, 15, 25, 26, 35]
        assert [evaluator.should_eval(i) for i in asked] == [
            *(True, False, False, False, True, False, False, True, False, True)
        ]


def test_best_is_saved_and_the_history_kept(tmp_path: Any) -> None:
    saved: list[str] = []
    with evaluator_of(tmp_path, n_episode=2) as evaluator:
        evaluator.eval(saved.append, 1, 10)
        evaluator.eval(saved.append, 2, 20)
        assert saved == ["ckpt_best.pth.tar"]
        assert [entry["envstep"] for entry in evaluator.history] == [10, 20]
        assert evaluator.best == 6.0
        other = evaluator_of(tmp_path)
        other.load_state_dict(evaluator.state_dict())
        assert other.best == 6.0
        assert other.history == evaluator.history
        other.close()
    log = tmp_path / "log" / "evaluator"
    assert (log / "evaluator_logger.txt").read_text().count("reward_mean") == 2
    assert list(log.glob("events*"))


def test_same_episodes_every_time_but_not_the_same_within_one(tmp_path: Any) -> None:
    cfg = dict(env_id="CartPole-v1")
    env = BaseEnvManager([partial(DingEnvWrapper, cfg=cfg)] * 2, {})
    env.seed(3, dynamic_seed=False)
    starts: list[list[float]] = []
    policy = dqn().eval_mode

    def forward(obs: Any) -> Any:
        starts.extend(value.tolist() for value in obs.values())
        return {i: {"action": np.int64(0)} for i in obs}

    evaluator = BaseSerialEvaluator(
        dict(n_episode=6), env=env, policy=policy._replace(forward=forward), exp_name=str(tmp_path)
    )
    with evaluator:
        first = list(evaluator.eval().reward)
        seen = list(starts)
        starts.clear()
        assert list(evaluator.eval().reward) == first
        assert starts == seen
    assert len(set(map(tuple, seen))) == len(seen)


class AbnormalOnce(BaseEnv):
    _observation_space = gym.spaces.Box(-9, 9, (3,), dtype=np.float32)
    _action_space = gym.spaces.Discrete(2)
    _reward_space = gym.spaces.Box(0, 1, (1,), dtype=np.float32)
    told = False

    def reset(self) -> np.ndarray:
        self.steps = 0
        return np.zeros(3, dtype=np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        self.steps += 1
        abnormal, self.told = self.steps == 2 and not self.told, self.told or self.steps == 2
        info = {"abnormal": True} if abnormal else {}
        return BaseEnvTimestep(np.zeros(3, dtype=np.float32), 1.0, self.steps == 4, info)

    def close(self) -> None:
        pass


def test_abnormal_episode_does_not_count(tmp_path: Any) -> None:
    env = BaseEnvManager([AbnormalOnce], {})
    mode = dqn().eval_mode
    with BaseSerialEvaluator(dict(n_episode=2), env=env, policy=mode, exp_name=str(tmp_path)) as e:
        assert list(e.eval().reward) == [4.0, 4.0]


def test_misuse(tmp_path: Any) -> None:
    with evaluator_of(tmp_path) as evaluator, pytest.raises(RuntimeError, match="n_episode"):
        evaluator.eval()
    with pytest.raises(ConfigError, match="'return'"):
        create_serial_evaluator(dict(type="interaction", stop_metric="retrn"))


class Pair(BaseEnv):
    """Two agents who get 1 and 10 at each of three steps."""

    _observation_space = gym.spaces.Box(-9, 9, (2, 1), np.float32)
    _action_space = AgentsSpace(gym.spaces.Discrete(2), 2)
    _reward_space = gym.spaces.Box(-99, 99, (2,), np.float32)

    def reset(self) -> Any:
        self.t = 0
        return np.zeros((2, 1), np.float32)

    def step(self, action: Any) -> BaseEnvTimestep:
        self.t += 1
        obs, reward = np.zeros((2, 1), np.float32), np.array([1, 10], np.float32)
        return BaseEnvTimestep(obs, reward, self.t == 3, {})

    def close(self) -> None: ...


def test_returns_of_agents_are_told_one_by_one(tmp_path: Path) -> None:
    class Idle:
        def forward(self, obs: Any) -> Any:
            return {i: {"action": np.zeros(2, np.int64)} for i in obs}

        def reset(self, ids: Any = None) -> None: ...

    env = BaseEnvManager([Pair] * 2, {})
    with BaseSerialEvaluator(
        dict(n_episode=3), env=env, policy=Idle(), exp_name=str(tmp_path)
    ) as evaluator:
        reward = evaluator.eval().reward
        assert list(reward) == [33, 33, 33]
        assert reward["return_agent_0"] == [3, 3, 3] and reward["return_agent_1"] == [30, 30, 30]
        (entry,) = evaluator.history
        assert (entry["reward_mean"], entry["reward_mean_agent_1"]) == (33, 30)
