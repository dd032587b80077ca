"""IMPALA against sums written out episode by episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import IMPALAPolicy
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed
from ding.worker import NaiveReplayBuffer, SampleCollector
from policy.gradient_fakes import (
    UNROLL,
    in_numpy,
    log_softmax,
    losses_of,
    moved,
    policy_of,
    samples_of,
    steps_of,
    taken,
    weights_of,
)
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, envs, states


def test_unrolls_are_the_steps_in_order() -> None:
    policy = policy_of("impala", discount_factor=0.9)
    steps, columns = steps_of(36), samples_of(policy, n=36).columns
    assert columns["obs"].shape == (5, UNROLL, 3)
    assert np.array_equal(columns["obs"][:4].reshape(32, 3), steps["obs"][:32])
    assert np.array_equal(columns["obs"][4], steps["obs"][28:])  # the last begins before
    terminated = steps["done"] & ~steps["truncated"]
    wanted = np.where(terminated, 0.0, 0.9)[:32]
    assert columns["discount"][:4].reshape(-1) == pytest.approx(wanted)


def test_too_few_steps_give_no_sample() -> None:
    policy = policy_of("impala")
    assert len(policy.collect_mode.get_train_sample(Rows(steps_of(UNROLL - 1)))) == 0


def targets_reference(policy: Any, unroll: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """V-trace of one unroll: from each row a sum over the rows up to the end of its episode."""
    learn, gamma = policy.cfg.learn, policy.cfg.discount_factor
    output = in_numpy(policy, unroll["obs"], "compute_actor_critic")
    value = output["value"]
    next_value = in_numpy(policy, unroll["next_obs"], "compute_critic")["value"]
    now = taken(log_softmax(output["logit"]), unroll["action"])
    weight = np.exp(now - taken(log_softmax(unroll["logit"]), unroll["action"]))
    rho = np.minimum(weight, learn.rho_clip_ratio)
    delta = rho * (unroll["reward"] + unroll["discount"] * next_value - value)
    return_ = value.copy()
    for s in range(UNROLL):
        trace = 1.0
        for t in range(s, UNROLL):
            return_[s] += trace * delta[t]
            trace *= gamma * learn.lambda_ * min(weight[t], learn.c_clip_ratio)
            if unroll["end"][t]:
                break
    last = unroll["end"].copy()
    last[-1] = True
    following = np.where(last, next_value, np.append(return_[1:], 0.0))
    rho_pg = np.minimum(weight, learn.rho_pg_clip_ratio)
    return rho_pg * (unroll["reward"] + unroll["discount"] * following - value), return_


def test_loss_by_hand() -> None:
    clips = dict(rho_clip_ratio=1.1, c_clip_ratio=0.9, rho_pg_clip_ratio=1.3)
    learn = dict(lambda_=0.8, entropy_weight=0.1, value_weight=0.3, **clips)
    policy = policy_of("impala", discount_factor=0.9, learn=learn)
    samples = samples_of(policy).columns
    policy_loss, value_loss, entropy, priority = [], [], [], []
    for i in range(4):
        unroll = {name: column[i] for name, column in samples.items()}
        advantage, return_ = targets_reference(policy, unroll)
        output = in_numpy(policy, unroll["obs"], "compute_actor_critic")
        log_pi = log_softmax(output["logit"])
        policy_loss.append(-taken(log_pi, unroll["action"]) * advantage)
        value_loss.append((output["value"] - return_) ** 2)
        entropy.append(-(np.exp(log_pi) * log_pi).sum(axis=-1))
        priority.append(np.abs(advantage).mean())
    output = policy.learn_mode.forward(Rows(samples))
    assert float(output["policy_loss"]) == pytest.approx(np.mean(policy_loss), rel=1e-3)
    assert float(output["value_loss"]) == pytest.approx(np.mean(value_loss), rel=1e-3)
    wanted = np.mean(policy_loss) + 0.3 * np.mean(value_loss) - 0.1 * np.mean(entropy)
    assert float(output["total_loss"]) == pytest.approx(wanted, rel=1e-3)
    assert output["priority"].numpy() == pytest.approx(priority, rel=1e-3)


def test_importance_weights_of_replay() -> None:
    policy = policy_of("impala")
    samples = samples_of(policy).columns
    weighted = Rows({**samples, "weight": np.zeros(4, dtype=np.float32)})
    assert float(policy._forward_learn(weighted)["total_loss"]) == 0


def test_a_loss_of_the_value_alone_leaves_the_actor_in_peace() -> None:
    policy = policy_of("impala", learn=dict(rho_pg_clip_ratio=0.0, entropy_weight=0.0))
    before = weights_of(policy)
    losses_of(policy, samples_of(policy), 1)
    assert not any(name.startswith("actor_head") for name in moved(before, weights_of(policy)))


def test_one_batch_is_overfitted() -> None:
    policy = policy_of("impala", discount_factor=0.0, learn=dict(learning_rate=0.01))
    losses = losses_of(policy, samples_of(policy), 200, "value_loss")
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("terminates", [True, False])
def test_known_value_is_learned(terminates: bool) -> None:
    set_pkg_seed(0)
    model = dict(obs_shape=LENGTH + 1, action_shape=2, encoder_hidden_size_list=[32])
    learn = dict(learning_rate=0.01, batch_size=16)
    cfg = dict(type="impala", model=model, learn=learn, collect=dict(unroll_len=8))
    policy: Any = IMPALAPolicy(dict(**cfg, discount_factor=GAMMA))
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=100))
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        buffer.push(collector.collect(n_sample=40))
    for _ in range(200):
        policy.learn_mode.forward(buffer.sample(16))
    with torch.no_grad():
        value = policy._model(states(), mode="compute_critic")["value"].numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.5)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.7)
