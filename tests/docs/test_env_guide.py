"""The guides' snippets about envs, models and processing functions."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch

from ding.config import compile_config
from ding.env import BaseEnvManager as FromAlias
from ding.envs import BaseEnvManager, get_vec_env_setting
from ding.model import DQN, model_wrap
from ding.policy import RandomPolicy
from ding.rl_utils.adder import get_gae, get_nstep_return_data
from ding.torch_utils.data_helper import to_device, to_tensor
from ding.utils.data.collate_fn import default_collate, default_decollate
from dizoo.classic_control.cartpole.config.cartpole_dqn_config import create_config, main_config
from dizoo.classic_control.cartpole.envs import CartPoleEnv

from .conftest import cartpoles


def test_one_env_with_the_default_config() -> None:
    env = CartPoleEnv(cfg={})
    env.seed(0)
    obs = env.reset()
    timestep = env.step(env.random_action())
    assert obs.shape == timestep.obs.shape == env.observation_space.shape == (4,)
    assert timestep.reward == 1.0 and timestep.done is False
    env.close()


def test_random_loop_over_an_env_manager() -> None:
    env = cartpoles(3, episode_num=2)
    random_policy = RandomPolicy(env.action_space, seed=0)
    transitions: dict[int, list] = {0: [], 1: [], 2: []}
    env.launch()
    while True:
        obs = env.ready_obs
        action = random_policy.forward(obs)
        timestep = env.step(action)
        for i, step in timestep.items():
            transitions[i].append([obs[i], action[i], step.obs, step.reward, step.done])
        if env.done:
            break
    env.close()
    for rows in transitions.values():
        assert sum(done for *_, done in rows) == 2
        assert rows[-1][4] is True


def test_env_is_another_name_of_envs() -> None:
    assert FromAlias is BaseEnvManager


def test_env_setting_of_a_config() -> None:
    cfg = compile_config(main_config, auto=True, create_cfg=create_config, save_cfg=False)
    env_fn, collector_env_cfg, evaluator_env_cfg = get_vec_env_setting(cfg.env)
    assert env_fn is CartPoleEnv
    assert (len(collector_env_cfg), len(evaluator_env_cfg)) == (8, 5)
    env = BaseEnvManager([lambda c=c: env_fn(c) for c in collector_env_cfg], cfg.env.manager)
    assert env.env_num == 8 and isinstance(env.action_space, gym.spaces.Discrete)


def test_one_model_behaves_in_three_ways() -> None:
    model = DQN(obs_shape=(4, 84, 84), action_shape=6)
    learn_model = model_wrap(model, wrapper_name="base")
    collector_model = model_wrap(model, wrapper_name="multinomial_sample")
    eval_model = model_wrap(model, wrapper_name="argmax_sample")
    obs = torch.rand(2, 4, 84, 84)
    logit = learn_model.forward(obs)["logit"]
    assert logit.shape == (2, 6)
    torch.testing.assert_close(eval_model.forward(obs)["action"], logit.argmax(dim=-1))
    assert collector_model.forward(obs)["action"].shape == (2,)
    with torch.no_grad():
        next(model.parameters()).zero_()
    for wrapped in (learn_model, collector_model, eval_model):  # no copy of the weights
        assert not next(iter(wrapped.parameters())).any()


def test_collate_and_decollate_are_inverse() -> None:
    samples = [{"obs": torch.full((3,), float(i)), "reward": float(i)} for i in range(4)]
    batch = default_collate(samples)
    assert batch["obs"].shape == (4, 3) and batch["reward"].dtype == torch.float32
    assert [float(row["reward"]) for row in default_decollate(batch)] == [0.0, 1.0, 2.0, 3.0]


def test_nstep_return_data_looks_ahead() -> None:
    rows = [
        {"obs": i, "next_obs": i + 1, "action": 0, "reward": float(i + 1), "done": i == 2}
        for i in range(3)
    ]
    ahead = get_nstep_return_data(rows, nstep=2, gamma=0.5)
    assert [np.asarray(row["reward"]).tolist() for row in ahead] == [[1, 2], [2, 3], [3, 0]]
    assert [int(row["next_obs"]) for row in ahead] == [2, 3, 3]
    assert [bool(row["done"]) for row in ahead] == [False, True, True]


def test_gae_of_two_steps() -> None:
    rows = [
        {"value": 1.0, "reward": 1.0, "done": False},
        {"value": 2.0, "reward": 1.0, "done": False},
    ]
    adv = [float(row["adv"]) for row in get_gae(rows, torch.tensor(4.0), 0.5, 0.5)]
    # deltas 1 + 0.5 * 2 - 1 = 1 and 1 + 0.5 * 4 - 2 = 1; 1 + 0.25 * 1 = 1.25
    assert adv == pytest.approx([1.25, 1.0])


def test_to_tensor_and_device() -> None:
    moved = to_device(to_tensor({"a": np.ones(2), "b": [1, 2]}), "cpu")
    assert moved["a"].dtype == torch.float32 and moved["a"].device.type == "cpu"
