"""Rows that users bring: obs, action, reward, next_obs and done are enough for every policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

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
