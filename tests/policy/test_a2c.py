"""A2C against plain computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from policy.gradient_fakes import (
    in_numpy,
    log_softmax,
    losses_of,
    policy_of,
    samples_of,
    taken,
)


@pytest.mark.parametrize("adv_norm", [False, True])
def test_loss_by_hand(adv_norm: bool) -> None:
    policy = policy_of("a2c", learn=dict(adv_norm=adv_norm, entropy_weight=0.1, value_weight=0.3))
    batch = samples_of(policy).columns
    output = in_numpy(policy, batch["obs"], "compute_actor_critic")
    log_pi = log_softmax(output["logit"])
    advantage = batch["advantage"]
    if adv_norm:
        advantage = (advantage - advantage.mean()) / advantage.std(ddof=1)
    policy_loss = -(taken(log_pi, batch["action"]) * advantage).mean()
    value_loss = ((batch["return"] - output["value"]) ** 2).mean()
    entropy = -(np.exp(log_pi) * log_pi).sum(axis=1).mean()
    loss, metrics = policy._loss({k: torch.from_numpy(v) for k, v in batch.items()})
    wanted = policy_loss + 0.3 * value_loss - 0.1 * entropy
    assert float(loss.detach()) == pytest.approx(wanted, rel=1e-4)
    assert float(metrics["policy_loss"]) == pytest.approx(policy_loss, abs=1e-5)
    assert float(metrics["value_loss"]) == pytest.approx(value_loss, rel=1e-4)


def test_one_pass_in_minibatches() -> None:
    policy = policy_of("a2c", learn=dict(batch_size=10))
    assert len(policy.learn_mode.forward(samples_of(policy))) == 3  # 32 samples, 2 left over


def test_one_batch_is_overfitted() -> None:
    learn = dict(batch_size=32, learning_rate=0.01, grad_clip_type=None, grad_clip_value=None)
    policy = policy_of("a2c", learn=learn, model=dict(share_encoder=False))
    samples = samples_of(policy)
    assert losses_of(policy, samples, 150, "value_loss")[-1] < 0.05
