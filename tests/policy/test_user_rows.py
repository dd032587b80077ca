"""Rows that users bring: obs, action, reward, next_obs and done are enough for every policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.rl_utils.adder import get_nstep_return_data
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from policy.fakes import batch_of, policy_of


def test_discount_by_hand() -> None:
    policy = policy_of("dqn", discount_factor=0.9)
    batch = {k: v for k, v in batch_of("dqn").items() if k != "discount"}
    discount = policy._batch(Rows(batch))["discount"].numpy()
    assert discount == pytest.approx(np.where(batch["done"], 0.0, 0.9))
    batch["truncated"] = batch["done"].copy()
    batch["truncated"][:4] = False
    discount = policy._batch(Rows(batch))["discount"].numpy()
    assert discount == pytest.approx(np.where(batch["done"] & ~batch["truncated"], 0.0, 0.9))
    ignoring = policy_of("dqn", discount_factor=0.9, learn=dict(ignore_done=True))
    assert (ignoring._batch(Rows(batch))["discount"].numpy() == np.float32(0.9)).all()


def test_discount_over_several_steps() -> None:
    policy = policy_of("dqn", discount_factor=0.5, nstep=3)
    batch = {k: v for k, v in batch_of("dqn").items() if k != "discount"}
    found = policy._batch(Rows(batch))
    assert found["discount"].numpy() == pytest.approx(np.where(batch["done"], 0.0, 0.125))
    rewards = np.array([[1.0, 2.0, 4.0]] * 16, dtype=np.float32)
    gammas = np.full(16, 0.25, dtype=np.float32)
    found = policy._batch(Rows({**batch, "reward": rewards, "value_gamma": gammas}))
    assert found["reward"].numpy() == pytest.approx(3.0)
    assert found["discount"].numpy() == pytest.approx(np.where(batch["done"], 0.0, 0.25))


def test_rewards_of_several_steps_without_their_discount() -> None:
    policy = policy_of("dqn", discount_factor=0.5, nstep=3)
    batch = {k: v for k, v in batch_of("dqn").items() if k != "discount"}
    steps = Rows({**batch, "reward": np.arange(1.0, 17.0), "done": np.arange(16) == 15})
    found = policy._batch(get_nstep_return_data(steps, 3, correct_terminate_gamma=False))
    assert found["reward"][:2].tolist() == [1 + 2 / 2 + 3 / 4, 2 + 3 / 2 + 4 / 4]
    assert found["reward"][-1] == 16
    assert found["discount"].tolist() == [0.125] * 13 + [0.0] * 3
    wrong = get_nstep_return_data(steps, 2, correct_terminate_gamma=False)
    with pytest.raises(ConfigError, match=r"2 rewards each, but policy\.nstep = 3; .*nstep = 2"):
        policy._batch(wrong)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_an_axis_of_one_goes_unless_it_is_that_of_an_agent(as_tensor: bool) -> None:
    policy = policy_of("dqn")
    names = ("reward", "done", "action")
    columns = {**batch_of("dqn"), **{k: batch_of("dqn")[k][:, None] for k in names}}
    if as_tensor:
        columns = {k: torch.from_numpy(v) for k, v in columns.items()}
    batch = policy._batch(Rows(columns))
    assert all(batch[name].shape == (16,) for name in names)
    columns |= {"obs": columns["obs"][:, None], "next_obs": columns["next_obs"][:, None]}
    batch = policy._batch(Rows(columns))
    assert all(batch[name].shape == (16, 1) for name in names)
    continuous = policy_of("sac", model=dict(action_shape=1))
    actions = np.zeros((16, 1), np.float32)
    assert continuous._batch(Rows({**batch_of("sac"), "action": actions}))["action"].ndim == 2


def test_rows_without_one_number_each_are_refused() -> None:
    rows = [{**row} for row in Rows(batch_of("dqn"))]
    rows[2]["reward"] = torch.zeros(2)
    with pytest.raises(ConfigError, match=r"'reward': row 0 has the shape \(\) and row 2 \(2,\)"):
        policy_of("dqn").learn_mode.forward(rows)


def test_single_steps_for_a_target_over_several_are_refused() -> None:
    policy = policy_of("dqn", nstep=3)
    batch = {k: v for k, v in batch_of("dqn").items() if k != "discount"}
    batch["episode_id"] = np.zeros(16, dtype=np.int64)
    with pytest.raises(ConfigError, match=r"policy\.nstep = 3, but the samples are single steps"):
        policy.learn_mode.forward(Rows(batch))


def test_plain_rows_of_ppo_are_what_collecting_makes_of_them() -> None:
    policy: Any = policy_of("ppo")
    columns = {k: batch_of("ppo")[k] for k in ("obs", "action", "reward", "next_obs", "done")}
    columns["done"][-1] = True
    prepared = policy._prepared(Rows(columns))
    with torch.no_grad():
        output = policy._model(torch.from_numpy(columns["obs"]), mode="compute_actor_critic")
    log_pi = output["logit"].log_softmax(-1).numpy()
    assert prepared["log_prob"] == pytest.approx(log_pi[np.arange(16), columns["action"]], abs=1e-5)
    assert prepared["value"] == pytest.approx(output["value"].numpy(), abs=1e-5)
    last = columns["reward"][-1] - prepared["value"][-1]
    assert prepared["advantage"][-1] == pytest.approx(last, abs=1e-5)
