"""ACER against recursions written out row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import ACERPolicy
from ding.policy.unrolled import time_first
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
    taken,
    weights_of,
)
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, envs, states


def batch_of(policy: Any, **more: Any) -> Any:
    samples = samples_of(policy).columns
    return policy._with_targets(time_first(policy._batch(Rows({**samples, **more}))))


def values(policy: Any, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    log_pi = log_softmax(in_numpy(policy, obs, "compute_actor")["logit"])
    q = in_numpy(policy, obs, "compute_critic")["q_value"]
    return log_pi, q, (np.exp(log_pi) * q).sum(axis=-1)


def test_retrace_by_a_plain_loop() -> None:
    policy = policy_of("acer", discount_factor=0.9)
    samples = samples_of(policy).columns
    batch = batch_of(policy)
    for i in range(4):
        unroll = {name: column[i] for name, column in samples.items()}
        log_pi, q, v = values(policy, unroll["obs"])
        _, _, next_v = values(policy, unroll["next_obs"])
        ratio = np.exp(log_pi - log_softmax(unroll["logit"]))
        c = np.minimum(taken(ratio, unroll["action"]), 1.0)
        retrace = np.zeros(UNROLL)
        for t in reversed(range(UNROLL)):
            if unroll["end"][t] or t == UNROLL - 1:
                after = next_v[t]
            else:
                after = v[t + 1] + c[t + 1] * (retrace[t + 1] - q[t + 1, unroll["action"][t + 1]])
            retrace[t] = unroll["reward"][t] + unroll["discount"][t] * after
        assert batch["q_ret"][:, i, 0].numpy() == pytest.approx(retrace, abs=1e-4)
        assert batch["ratio"][:, i].numpy() == pytest.approx(ratio, rel=1e-3)


def test_critic_loss_by_hand() -> None:
    policy = policy_of("acer", learn=dict(value_weight=0.3))
    batch = batch_of(policy)
    _, q, _ = values(policy, batch["obs"].numpy())
    error = taken(q, batch["action"].numpy()) - batch["q_ret"][..., 0].numpy()
    loss, metrics = policy._critic_loss(batch)
    assert float(loss.detach()) == pytest.approx(0.3 * 0.5 * (error**2).mean(), rel=1e-4)
    assert metrics["priority"].numpy() == pytest.approx(np.abs(error).mean(axis=0), rel=1e-3)


@pytest.mark.parametrize("bound", [None, 0.01])
def test_gradient_of_the_policy_by_hand(bound: float | None) -> None:
    """By the log-probabilities: truncated weight of the action taken, correction for all others."""
    learn = dict(c_clip_ratio=0.8, entropy_weight=0.0, trust_region=bound is not None)
    policy = policy_of("acer", learn={**learn, "trust_region_value": bound or 0.0})
    with torch.no_grad():
        for parameter in policy._average.module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    batch = batch_of(policy)
    obs, action = batch["obs"].numpy(), batch["action"].numpy()
    log_pi, q, v = values(policy, obs)
    pi, ratio = np.exp(log_pi), batch["ratio"].double().numpy()
    surplus = np.maximum(0.0, 1 - 0.8 / ratio)
    g = surplus * pi * (q - v[..., None])
    error = batch["q_ret"][..., 0].numpy() - v
    np.put_along_axis(
        g,
        action[..., None],
        taken(g, action)[..., None] + (np.minimum(taken(ratio, action), 0.8) * error)[..., None],
        axis=-1,
    )
    if bound is not None:
        with torch.no_grad():
            average = policy._average.module(batch["obs"], mode="compute_actor")["logit"]
        k = -np.exp(log_softmax(average.numpy()))  # gradient of KL(average || policy)
        excess = (k * g).sum(axis=-1, keepdims=True) - bound
        assert (excess > 0).any()
        g = g - np.maximum(0.0, excess / (k * k).sum(axis=-1, keepdims=True)) * k
    loss, _ = policy._actor_loss(batch)
    assert float(loss.detach()) == pytest.approx(-(g * log_pi).sum(axis=-1).mean(), rel=1e-3)


def test_weights_of_replay() -> None:
    policy = policy_of("acer")
    batch = {**batch_of(policy), "weight": torch.zeros(4)}
    assert float(policy._critic_loss(batch)[0].detach()) == 0
    assert float(policy._actor_loss(batch)[0].detach()) == 0


def test_each_step_moves_its_own_network() -> None:
    for rate, still in (("learning_rate_actor", "actor"), ("learning_rate_critic", "critic")):
        policy = policy_of("acer", learn={rate: 1e-20})
        before = weights_of(policy)
        losses_of(policy, samples_of(policy), 1)
        changed = moved(before, weights_of(policy))
        assert changed == {name for name in before if not name.startswith(still)}


def test_average_policy_follows_slowly() -> None:
    policy = policy_of("acer", learn=dict(target_theta=0.25))
    old = {n: p.clone() for n, p in policy._average.module.named_parameters()}
    losses_of(policy, samples_of(policy), 1)
    now = dict(policy._model.named_parameters())
    for name, parameter in policy._average.module.named_parameters():
        if name.startswith("actor"):
            wanted = old[name] + 0.25 * (now[name].detach() - old[name])
            assert torch.allclose(parameter, wanted, atol=1e-6)


def test_one_batch_is_overfitted() -> None:
    policy = policy_of("acer", discount_factor=0.0, learn=dict(learning_rate_critic=0.01))
    losses = losses_of(policy, samples_of(policy), 200, "value_loss")
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("terminates", [True, False])
def test_known_value_is_learned(terminates: bool) -> None:
    set_pkg_seed(0)
    model = dict(obs_shape=LENGTH + 1, action_shape=2, encoder_hidden_size_list=[32])
    learn = dict(learning_rate_critic=0.01, batch_size=16)
    cfg = dict(type="acer", model=model, learn=learn, collect=dict(unroll_len=8))
    policy: Any = ACERPolicy(dict(**cfg, discount_factor=GAMMA))
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=100))
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        buffer.push(collector.collect(n_sample=40))
    for _ in range(200):
        policy.learn_mode.forward(buffer.sample(16))
    _, _, value = values(policy, states().numpy())
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.5)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.7)
