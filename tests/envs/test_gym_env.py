from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from ding.envs import DingEnvWrapper
from ding.utils.errors import DingError


class Toy(gym.Env[Any, Any]):
    """Obs is a nested float64 zero; reward 3 a step; ends after `length` steps."""

    def __init__(self, length: int = 4, action_space: Any = None, obs_space: Any = None) -> None:
        box = spaces.Box(-1, 1, (2,), dtype=np.float64)
        self.observation_space = obs_space or spaces.Dict(a=box, n=spaces.Discrete(5))
        self.action_space = action_space or spaces.Discrete(2)
        self.length = length
        self.actions: list[Any] = []

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps, self.seed, self.options = 0, seed, options
        return {"a": np.zeros(2), "n": 1}, {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        self.actions.append(action)
        return {"a": np.zeros(2), "n": 1}, np.float64(3), self.steps == self.length, False, {}


def make_toy() -> Toy:
    return Toy()


def episode(env: DingEnvWrapper) -> list[Any]:
    steps = [env.step(0)]
    while not steps[-1].done:
        steps.append(env.step(0))
    return steps


def test_cartpole_by_id() -> None:
    env = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
    assert env._env is None
    assert env.observation_space.shape == (4,)
    assert env.action_space == spaces.Discrete(2)
    assert env.reward_space.shape == (1,)
    env.seed(0, dynamic_seed=False)
    reference = gym.make("CartPole-v1")
    expected, _ = reference.reset(seed=0)
    assert env.reset().tolist() == expected.tolist()
    for action in (0, np.int64(1), np.array([1]), torch.tensor(0)):
        step = env.step(action)
        assert step.obs.tolist() == reference.step(np.asarray(action).item())[0].tolist()
        assert step.reward == 1.0
        assert type(step.reward) is float
    env.close()
    reference.close()


def test_terminated_and_truncated_are_told_apart() -> None:
    env = DingEnvWrapper(cfg={"env_id": "CartPole-v1", "max_episode_steps": 5})
    env.seed(0)
    env.reset()
    steps = episode(env)
    assert len(steps) == 5
    assert steps[-1].info == {"truncated": True, "eval_episode_return": 5.0}
    fallen = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
    fallen.seed(0)
    fallen.reset()
    last = episode(fallen)[-1]
    assert "truncated" not in last.info
    assert last.info["eval_episode_return"] > 5


def test_termination_at_the_limit_is_no_truncation() -> None:
    env = DingEnvWrapper(Toy(length=2), {"max_episode_steps": 2})
    env.reset()
    assert "truncated" not in episode(env)[-1].info


def test_limits_of_the_registry_hold() -> None:
    env = DingEnvWrapper(cfg={"env_id": "Pendulum-v1"})
    env.reset()
    steps = 1
    while not env.step(np.zeros(1)).done:
        steps += 1
    assert steps == 200


def test_limit_counts_simulator_steps_below_wrappers() -> None:
    skip = {"type": "max_and_skip", "kwargs": {"skip": 2}}
    cfg = {"env_id": "Pendulum-v1", "max_episode_steps": 10, "env_wrapper": [skip]}
    env = DingEnvWrapper(cfg=cfg)
    env.reset()
    steps = 1
    while not env.step(np.zeros(1)).done:
        steps += 1
    assert steps == 5


@pytest.mark.parametrize("given", [Toy(), make_toy, Toy])
def test_instance_and_factory_with_nested_obs(given: Any) -> None:
    env = DingEnvWrapper(given, {"rew_clip": True, "stop_value": 3, "manager": {}})
    assert env.observation_space["a"].dtype == np.float32
    obs = env.reset()
    assert obs["a"].dtype == np.float32
    assert obs["n"].tolist() == np.eye(5)[1].tolist()
    steps = episode(env)
    assert [s.reward for s in steps] == [1.0] * 4
    assert steps[-1].info == {"eval_episode_return": 12.0}
    assert steps[0].obs["a"].dtype == np.float32


def test_reset_arguments_reach_the_simulator() -> None:
    toy = Toy()
    env = DingEnvWrapper(toy)
    env.seed(8, dynamic_seed=False)
    env.reset(options={"map": 1})
    assert (toy.seed, toy.options) == (8, {"map": 1})
    env.reset()
    assert toy.seed not in (8, None)


def test_act_scale() -> None:
    toy = Toy(action_space=spaces.Box(-2, 2, (1,)))
    env = DingEnvWrapper(toy)
    env.reset()
    env.step(np.array([0.5]))
    env.step(np.array([9.0]))
    assert np.concatenate(toy.actions).tolist() == [1.0, 2.0]
    assert env.action_space == spaces.Box(-1, 1, (1,))


def test_random_action_follows_the_seed() -> None:
    def draw(seed: int) -> list[float]:
        env = DingEnvWrapper(cfg={"env_id": "Pendulum-v1"})
        env.seed(seed)
        return [float(env.random_action()[0]) for _ in range(3)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert all(abs(a) <= 1 for a in draw(3))


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_pickled_copy_goes_on_identically(env_id: str) -> None:
    env = DingEnvWrapper(cfg={"env_id": env_id})
    env.seed(3)
    env.reset()
    for _ in range(5):
        env.step(env.random_action())
    copy = pickle.loads(pickle.dumps(env))
    for _ in range(300):  # Beyond the end of an episode: seeds of resets must agree too.
        action = env.random_action()
        assert np.array_equal(action, copy.random_action())
        ours, theirs = env.step(action), copy.step(action)
        assert np.array_equal(ours.obs, theirs.obs)
        assert ours[1:] == theirs[1:]
        if ours.done:
            assert np.array_equal(env.reset(), copy.reset())


def test_lambda_factory_can_be_pickled_once_made() -> None:
    env = DingEnvWrapper(lambda: gym.make("CartPole-v1"))
    env.reset()
    copy = pickle.loads(pickle.dumps(env))
    assert np.array_equal(env.step(1).obs, copy.step(1).obs)
    copy.close()
    with pytest.raises(DingError, match="its factory is gone"):
        copy.reset()


def test_step_without_episode() -> None:
    env = DingEnvWrapper(cfg={"env_id": "CartPole-v1", "max_episode_steps": 1})
    with pytest.raises(DingError, match=r"CartPole-v1\) has no running episode"):
        env.step(0)
    env.reset()
    assert env.step(0).done
    with pytest.raises(DingError, match="no running episode"):
        env.step(0)
    env.reset()
    env.close()
    with pytest.raises(DingError, match="no running episode"):
        env.step(0)
    assert env.reset().shape == (4,)


def test_wrong_use() -> None:
    with pytest.raises(DingError, match="needs an env, a factory, or cfg"):
        DingEnvWrapper()
    with pytest.raises(DingError, match="did you mean 'CartPole-v1'"):
        DingEnvWrapper(cfg={"env_id": "CartPol-v1"}).reset()
    with pytest.raises(DingError, match=r"cannot make env .* with {'gravty': 1}"):
        DingEnvWrapper(cfg={"env_id": "CartPole-v1", "env_kwargs": {"gravty": 1}}).reset()
    with pytest.raises(DingError, match=r"observation space of .* is a Text space"):
        DingEnvWrapper(Toy(obs_space=spaces.Text(3))).reset()
    with pytest.raises(DingError, match="cannot render"):
        DingEnvWrapper(Toy()).render()


def test_render() -> None:
    env = DingEnvWrapper(cfg={"env_id": "CartPole-v1", "env_kwargs": {"render_mode": "rgb_array"}})
    env.reset()
    assert env.render().shape == (400, 600, 3)
    env.close()


def test_evaluator_leaves_collect_only_wrappers_out() -> None:
    clip = {"type": "clip_reward", "collect_only": True}
    cfg = {"evaluator_env_num": 1, "collector_env_num": 1, "env_wrapper": [clip, "flat_obs"]}
    assert DingEnvWrapper.create_evaluator_env_cfg(cfg)[0]["env_wrapper"] == ["flat_obs"]
    assert DingEnvWrapper.create_collector_env_cfg(cfg)[0]["env_wrapper"] == [clip, "flat_obs"]


def test_inner_episode_return_wins() -> None:
    env = DingEnvWrapper(make_toy, {"env_wrapper": ["eval_episode_return", "clip_reward"]})
    env.reset()
    steps = episode(env)
    assert steps[-1].reward == 1.0
    assert steps[-1].info["eval_episode_return"] == 12.0


def test_default_config() -> None:
    cfg = DingEnvWrapper.default_config()
    assert cfg.cfg_type == "DingEnvWrapperDict"
    assert cfg.act_scale is True
