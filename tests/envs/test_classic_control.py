from __future__ import annotations

import numpy as np
import pytest

from ding.envs import BaseEnvManager
from ding.utils.errors import DingError
from dizoo.classic_control.cartpole.envs import CartPoleEnv
from dizoo.classic_control.pendulum.envs import PendulumEnv


@pytest.mark.parametrize(("cfg", "steps"), [({}, 200), ({"env_id": "CartPole-v1"}, 500)])
def test_cartpole_lengths(cfg: dict[str, str], steps: int) -> None:
    env = CartPoleEnv(cfg)
    env.reset()
    assert env._limit == steps
    with pytest.raises(DingError, match="did you mean 'CartPole-v1'"):
        CartPoleEnv({"env_id": "CartPole-v2"})


def test_pendulum_actions() -> None:
    assert PendulumEnv({}).action_space.high.tolist() == [2.0]
    assert PendulumEnv({"act_scale": True}).action_space.high.tolist() == [1.0]


def test_pendulum_discrete_torques() -> None:
    env, same = PendulumEnv({"continuous": False}), PendulumEnv({})
    assert env.action_space.n == 11
    for one in (env, same):
        one.seed(0)
        one.reset()
    assert np.array_equal(env.step(0).obs, same.step(np.array([-2.0])).obs)
    assert np.array_equal(env.step(10).obs, same.step(np.array([2.0])).obs)
    assert np.array_equal(env.step(6).obs, same.step(np.array([0.4])).obs)


@pytest.mark.parametrize("cls", [CartPoleEnv, PendulumEnv])
def test_in_a_manager(cls: type) -> None:
    with BaseEnvManager([lambda: cls({}) for _ in range(2)], {"episode_num": 1}) as manager:
        manager.seed(0)
        manager.launch()
        returns = {}
        while not manager.done:
            for i, step in manager.step(manager.random_action()).items():
                if step.done:
                    returns[i] = step.info["eval_episode_return"]
        assert sorted(returns) == [0, 1]
