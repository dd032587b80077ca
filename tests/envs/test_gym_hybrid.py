from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import BaseEnvManager
from ding.policy.random_policy import random_actions
from ding.utils.errors import DingError
from dizoo.gym_hybrid.envs import GymHybridEnv, Moving, Sliding

ACCELERATE, TURN, BRAKE = range(3)


def act(kind: int, power: float = 0.0, turn: float = 0.0) -> dict[str, Any]:
    return {"action_type": kind, "action_args": np.array([power, turn], np.float32)}


def placed(cls: type[Moving], distance: float) -> Moving:
    """Looking at a target that lies straight ahead."""
    env = cls()
    env.reset(seed=0)
    env.x, env.y, env.heading = -0.8, 0.0, 0.0
    env.target_x, env.target_y = env.x + distance, 0.0
    return env


def test_moving_by_hand() -> None:
    env = placed(Moving, 0.5)
    obs, reward, terminated, truncated, _ = env.step(act(ACCELERATE, power=1.0))
    assert reward == pytest.approx(0.025 - 0.001)
    assert obs == pytest.approx([-0.775, 0, 1, 0, 0.5, 0, 0.475, 1, 0, 0], abs=1e-6)
    assert not terminated and not truncated
    obs, reward, *_ = env.step(act(TURN, turn=1.0))  # a quarter to the left
    assert env.heading == pytest.approx(math.pi / 2)
    assert obs[4] == pytest.approx(0.5)
    # The target is to the right now: the way goes across, so the distance grows.
    assert obs[8] < -0.9
    assert reward < -0.001
    env.step(act(BRAKE))
    assert env.speed == 0


def test_sliding_keeps_its_direction() -> None:
    env = placed(Sliding, 0.5)
    env.step(act(ACCELERATE, power=1.0))
    obs, *_ = env.step(act(TURN, turn=1.0))
    assert (env.velocity_x, env.velocity_y) == pytest.approx((0.25, 0.0))
    assert obs[4:6] == pytest.approx([0.0, -0.25], abs=1e-6)
    for _ in range(10):
        env.step(act(ACCELERATE, power=1.0))
    assert env.speed == pytest.approx(1.0)
    speeds = [(env.step(act(BRAKE)), env.speed)[1] for _ in range(5)]
    assert speeds == pytest.approx([0.75, 0.5, 0.25, 0.0, 0.0], abs=1e-9)


def test_arriving_needs_a_stop_and_the_border_ends_it() -> None:
    env = placed(Moving, 0.3)
    total, terminated = 0.0, False
    env.step(act(ACCELERATE, power=1.0))
    while env.distance > 0.05:
        assert not env.step(act(ACCELERATE, power=1.0))[2]
    obs, reward, terminated, _, info = env.step(act(BRAKE))
    assert terminated and info["success"] and obs[9] == 1
    assert reward == pytest.approx(1.0 - 0.001)
    env = placed(Moving, 0.3)
    env.step(act(TURN, turn=1.0))
    env.step(act(TURN, turn=1.0))
    while not terminated or total == 0.0:
        _, total, terminated, _, info = env.step(act(ACCELERATE, power=1.0))
    assert total < -1 and not info["success"]


@pytest.mark.parametrize("env_id", ["Moving-v0", "Sliding-v0"])
def test_in_a_manager(env_id: str) -> None:
    fns = [lambda: GymHybridEnv({"env_id": env_id, "max_episode_steps": 20}) for _ in range(3)]
    with BaseEnvManager(fns, {"episode_num": 1}) as manager:
        manager.seed(0)
        manager.launch()
        args = manager.action_space["action_args"]
        assert args.low.tolist() == [-1, -1] and args.high.tolist() == [1, 1]
        returns = {}
        rng = np.random.default_rng(0)
        while not manager.done:
            ids = list(manager.ready_obs)
            actions = random_actions(manager.action_space, len(ids), rng)
            rows = {i: {k: v[n] for k, v in actions.items()} for n, i in enumerate(ids)}
            for i, step in manager.step(rows).items():
                assert step.obs.shape == (10,) and step.obs.dtype == np.float32
                if step.done:
                    returns[i] = step.info["eval_episode_return"]
                    assert step.info.get("truncated") or abs(float(step.reward)) > 0.9
        assert sorted(returns) == [0, 1, 2]


def test_limit_seed_and_frame() -> None:
    env, other = GymHybridEnv({}), GymHybridEnv({})
    for one in (env, other):
        one.seed(3, dynamic_seed=False)
    assert np.array_equal(env.reset(), other.reset())
    for k in range(200):
        step = env.step({"action_type": np.array(BRAKE), "action_args": np.zeros(2, np.float32)})
        assert step.done == (k == 199)
    assert step.info["truncated"]
    shown = GymHybridEnv({"env_kwargs": {"render_mode": "rgb_array"}})
    shown.reset()
    assert shown.render().shape == (200, 200, 3)
    with pytest.raises(DingError, match="did you mean 'Moving-v0'"):
        GymHybridEnv({"env_id": "Moving-v1"})


def test_random_actions_of_nested_spaces() -> None:
    parts = Moving().action_space.spaces
    actions = random_actions(gym.spaces.Tuple(tuple(parts.values())), 500, np.random.default_rng(0))
    by_name = dict(zip(parts, actions, strict=True))
    assert np.bincount(by_name["action_type"]).min() > 100
    power, turn = by_name["action_args"].T
    assert power.min() >= 0 and turn.min() < -0.9 and by_name["action_args"].dtype == np.float32
