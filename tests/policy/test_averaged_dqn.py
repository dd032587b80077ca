"""Averaged DQN: which networks the mean is of."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from ding.policy.averaged_dqn import AveragedDQNPolicy
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from policy.fakes import batch_of, losses_of
from policy.q_fakes import (
    check_compiled,
    check_known_values,
    check_overfits,
    small,
    values,
)


def test_target_is_the_mean_of_the_last_networks() -> None:
    policy = small("averaged_dqn", learn=dict(n_average=3, target_update_freq=2))
    batch = batch_of("dqn")
    past = [deepcopy(policy._model)] * 3
    for k in range(1, 12):
        losses_of(policy, batch, 1)
        if k % 2 == 0:
            past = [*past[1:], deepcopy(policy._model)]
        wanted = np.mean([values(model, batch["next_obs"]) for model in past], axis=0)
        assert values(policy._target.module, batch["next_obs"]) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("double_q", [False, True])
def test_loss_by_hand(double_q: bool) -> None:
    policy = small("averaged_dqn", learn=dict(n_average=2, double_q=double_q))
    with torch.no_grad():
        for parameter in policy._target.module.parameters():
            parameter.add_(torch.randn_like(parameter))
    batch = batch_of("dqn")
    q = values(policy._model, batch["obs"])
    own = values(policy._model, batch["next_obs"])
    mean = np.mean([values(m, batch["next_obs"]) for m in policy._target.module], axis=0)
    best = (own if double_q else mean).argmax(axis=1)
    rows = np.arange(16)
    target = batch["reward"] + batch["discount"] * mean[rows, best]
    wanted = np.square(q[rows, batch["action"]] - target).mean()
    output = policy.learn_mode.forward(Rows(batch))
    assert float(output["total_loss"]) == pytest.approx(wanted, rel=1e-4)


def test_state_goes_on_exactly() -> None:
    batch = batch_of("dqn")
    learn: dict[str, Any] = dict(n_average=3, target_update_freq=2)
    policy, other = small("averaged_dqn", learn=learn), small("averaged_dqn", seed=5, learn=learn)
    losses_of(policy, batch, 5)
    other.learn_mode.load_state_dict(deepcopy(policy.learn_mode.state_dict()))
    assert losses_of(other, batch, 9) == losses_of(policy, batch, 9)


def test_learns_one_batch() -> None:
    check_overfits(small("averaged_dqn", learn=dict(learning_rate=0.01)))


@pytest.mark.parametrize("terminates", [True, False])
def test_time_limits(terminates: bool) -> None:
    learn = dict(learning_rate=0.01, target_update_freq=5, n_average=2)
    check_known_values(AveragedDQNPolicy, terminates, learn)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    check_compiled("averaged_dqn", target_update_freq=2, n_average=2)


@pytest.mark.parametrize(
    ("learn", "pattern"),
    [(dict(n_average=0), "n_average = 0"), (dict(target_theta=0.1), "target_theta = 0.1")],
)
def test_bad_settings(learn: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        small("averaged_dqn", learn=learn)
