"""PPG: which network learns what, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import PPGPolicy
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed
from ding.worker import SampleCollector
from policy.gradient_fakes import (
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


def tensors(columns: dict[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(column) for name, column in columns.items()}


@torch.no_grad()
def test_losses_by_hand() -> None:
    learn = dict(entropy_weight=0.1, value_weight=0.3, adv_norm=False, aux_bc_weight=2.0)
    policy = policy_of("ppg", learn=learn)
    batch = samples_of(policy).columns
    output = in_numpy(policy, batch["obs"], "compute_actor_critic")
    value = in_numpy(policy, batch["obs"], "compute_critic")["value"]
    log_pi = log_softmax(output["logit"])
    ratio = np.exp(taken(log_pi, batch["action"]) - batch["log_prob"])
    clipped = np.clip(ratio, 0.8, 1.2)
    advantage = batch["advantage"]
    objective = np.minimum(ratio * advantage, clipped * advantage).mean()
    entropy = -(np.exp(log_pi) * log_pi).sum(axis=1).mean()
    loss, _ = policy._policy_loss(tensors(batch))
    assert float(loss) == pytest.approx(-objective - 0.1 * entropy, rel=1e-3)
    loss, _ = policy._value_loss(tensors(batch))
    wanted = 0.3 * 0.5 * ((batch["return"] - value) ** 2).mean()
    assert float(loss) == pytest.approx(wanted, rel=1e-3)
    old = np.random.default_rng(1).standard_normal((32, 4)).astype(np.float32)
    old_pi = np.exp(log_softmax(old))
    divergence = (old_pi * (log_softmax(old) - log_pi)).sum(axis=1).mean()
    aux = 0.5 * ((batch["return"] - output["value"]) ** 2).mean()
    loss, _ = policy._aux_loss(tensors({**batch, "logit": old, "aux_value": batch["value"]}))
    assert float(loss) == pytest.approx(aux + 2.0 * divergence, rel=1e-3)


def test_phases_train_their_own_networks() -> None:
    policy = policy_of("ppg", learn=dict(aux_freq=3))
    samples = samples_of(policy)
    for k in range(1, 4):  # afterwards Adam's momentum goes on moving the auxiliary head
        before = weights_of(policy)
        output = policy.learn_mode.forward(samples)
        changed = moved(before, weights_of(policy))
        auxiliary = k % 3 == 0
        assert ("actor_critic.critic_head.main.2.weight" in changed) is auxiliary
        assert any(name.startswith("aux_head") for name in changed)
        assert any(name.startswith("actor_critic.actor_head") for name in changed)
        # 2 minibatches of policy and value each; 6 epochs over 3 collects of 2 minibatches
        assert len(output) == 4 + (36 if auxiliary else 0)


def test_auxiliary_phase_keeps_the_policy() -> None:
    policy = policy_of("ppg", learn=dict(aux_train_epoch=40, learning_rate=0.003))
    columns = samples_of(policy).columns
    before = in_numpy(policy, columns["obs"], "compute_actor_critic")
    outputs = policy._auxiliary_phase({name: columns[name] for name in ("obs", "return")})
    after = in_numpy(policy, columns["obs"], "compute_actor_critic")
    pi, new = (np.exp(log_softmax(x["logit"])) for x in (before, after))
    assert np.abs(pi - new).mean() < 0.05
    assert float(outputs[-1]["aux_loss"]) < 0.5 * float(outputs[0]["aux_loss"])
    assert np.abs(before["value"] - after["value"]).mean() > 0.2


def test_one_batch_is_overfitted() -> None:
    policy = policy_of("ppg", learn=dict(learning_rate=0.01, batch_size=32))
    losses = losses_of(policy, samples_of(policy), 60)
    assert losses[-1] < losses[0] - 0.1


def test_collects_since_the_last_phase_are_saved() -> None:
    policy, other = policy_of("ppg"), policy_of("ppg")
    losses_of(policy, samples_of(policy), 3)
    other.learn_mode.load_state_dict(policy.learn_mode.state_dict())
    assert other._recent.count == 3


@pytest.mark.parametrize("terminates", [True, False])
def test_known_value_is_learned(terminates: bool) -> None:
    set_pkg_seed(0)
    model = dict(obs_shape=LENGTH + 1, action_shape=2, encoder_hidden_size_list=[32])
    learn = dict(learning_rate=0.01, batch_size=50, critic_epoch_per_collect=4, value_norm=False)
    cfg = dict(type="ppg", model=model, learn=learn, collect=dict(n_sample=100))
    policy: Any = PPGPolicy(dict(**cfg, discount_factor=GAMMA))
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        for _ in range(30):
            policy.learn_mode.forward(collector.collect())
    with torch.no_grad():
        value = policy._model(states(), mode="compute_critic")["value"].numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.6)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.8)


def test_rows_are_enough() -> None:
    policy = policy_of("ppg")
    assert isinstance(policy.learn_mode.forward(list(Rows(samples_of(policy).columns))), list)
