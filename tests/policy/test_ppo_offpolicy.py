"""Off-policy PPO against the losses of rl_utils and plain computations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import PPOOffPolicy
from ding.rl_utils import ppo_data, ppo_error
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed
from ding.worker import NaiveReplayBuffer, SampleCollector
from policy.gradient_fakes import in_numpy, losses_of, policy_of, samples_of, steps_of
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, envs, states


@pytest.mark.parametrize("weighted", [False, True])
def test_loss_is_that_of_rl_utils(weighted: bool) -> None:
    policy = policy_of("ppo_offpolicy", learn=dict(value_norm=False, entropy_weight=0.1))
    samples, steps = samples_of(policy).columns, steps_of()
    batch = {k: torch.from_numpy(v) for k, v in samples.items()}
    weight = torch.linspace(0, 1, 32) if weighted else None
    with torch.no_grad():
        output = policy._model(batch["obs"], mode="compute_actor_critic")
    loss, _ = ppo_error(
        ppo_data(
            output["logit"],
            torch.from_numpy(steps["logit"]),
            batch["action"],
            output["value"],
            batch["value"],
            batch["advantage"],
            batch["return"],
            weight,
        ),
        0.2,
        False,
    )
    wanted = loss.policy_loss + 0.5 * loss.value_loss - 0.1 * loss.entropy_loss
    given = {**samples, "weight": weight.numpy()} if weight is not None else samples
    found = policy.learn_mode.forward(Rows(given))
    assert float(found["total_loss"]) == pytest.approx(float(wanted), rel=1e-4)
    error = (batch["return"] - output["value"]).abs().numpy()
    assert found["priority"].numpy() == pytest.approx(error, rel=1e-4, abs=1e-5)


def test_samples_hold_only_what_is_needed() -> None:
    plain = samples_of(policy_of("ppo_offpolicy")).columns
    assert set(plain) == {"obs", "action", "log_prob", "value", "advantage", "return"}
    nstep = samples_of(policy_of("ppo_offpolicy", nstep_return=True, nstep=3)).columns
    assert set(nstep) == {*plain, "reward", "next_obs", "done", "truncated"}


def test_nstep_returns_of_the_critic_of_now() -> None:
    cfg: dict[str, Any] = dict(nstep_return=True, nstep=2, discount_factor=0.9)
    policy = policy_of("ppo_offpolicy", learn=dict(value_norm=False), **cfg)
    steps = steps_of()
    buffer = NaiveReplayBuffer(dict(nstep=2, discount_factor=0.9, replay_buffer_size=32))
    buffer.push(Rows({**samples_of(policy).columns, "end": steps["end"]}))
    samples = buffer._read(np.arange(32)).columns
    losses_of(policy, Rows(samples), 3)
    wanted = np.zeros(32)
    for t in range(32):
        last = t if steps["end"][t] else t + 1
        reward = sum(0.9**k * steps["reward"][t + k] for k in range(last - t + 1))
        after = in_numpy(policy, steps["next_obs"][last : last + 1], "compute_critic")["value"][0]
        terminated = steps["done"][last] and not steps["truncated"][last]
        wanted[t] = reward + (0.0 if terminated else 0.9 ** (last - t + 1) * after)
    found = policy._return(policy._batch(Rows(samples))).numpy()
    assert found == pytest.approx(wanted, abs=1e-4)


def test_scaled_values_mean_the_same() -> None:
    """With value_norm the critic learns returns in units of their deviation."""
    policy = policy_of("ppo_offpolicy", learn=dict(value_norm=True))
    samples = samples_of(policy).columns
    policy.learn_mode.forward(Rows(samples))
    assert policy._return_scale.std == pytest.approx(samples["return"].std(), rel=1e-4)


def test_one_batch_is_overfitted() -> None:
    policy = policy_of("ppo_offpolicy", learn=dict(learning_rate=0.01))
    losses = losses_of(policy, samples_of(policy), 150)
    assert losses[-1] < losses[0] - 0.3


@pytest.mark.parametrize("nstep_return", [True, False])
@pytest.mark.parametrize("terminates", [True, False])
def test_known_value_is_learned(terminates: bool, nstep_return: bool) -> None:
    set_pkg_seed(0)
    model = dict(obs_shape=LENGTH + 1, action_shape=2, encoder_hidden_size_list=[32])
    learn = dict(learning_rate=0.01, batch_size=64, value_norm=False)
    cfg = dict(type="ppo_offpolicy", model=model, learn=learn, nstep_return=nstep_return)
    policy: Any = PPOOffPolicy(dict(**cfg, discount_factor=GAMMA, nstep=2 if nstep_return else 1))
    nstep = policy.cfg.nstep
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=200, nstep=nstep, discount_factor=GAMMA))
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        for _ in range(60):
            buffer.push(collector.collect(n_sample=100))
            for _ in range(5):
                policy.learn_mode.forward(buffer.sample(64))
    with torch.no_grad():
        value = policy._model(states(), mode="compute_critic")["value"].numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.6)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.8)
