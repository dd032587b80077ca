"""What TD3 does otherwise than DDPG."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ding.utils.batch import Rows
from policy.continuous import batch_of, policy_of, same, shaken_target, weights_of


@torch.no_grad()
def test_target_is_the_lower_critic_at_a_noisy_action() -> None:
    policy = policy_of("td3")
    target_model, batch = shaken_target(policy), policy._batch(Rows(batch_of("td3")))
    policy._add_noise(batch)
    assert batch["next_noise"].abs().max() <= 0.5 and batch["next_noise"].std() > 0.1
    action = target_model(batch["next_obs"], mode="compute_actor")["action"]
    x = {"obs": batch["next_obs"], "action": (action + batch["next_noise"]).clamp(-1, 1)}
    lower = torch.minimum(*target_model(x, mode="compute_critic")["q_value"])
    target = batch["reward"] + batch["discount"] * lower
    x = {"obs": batch["obs"], "action": batch["action"]}
    errors = [q - target for q in policy._model(x, mode="compute_critic")["q_value"]]
    loss, metrics = policy._critic_loss(batch)
    assert float(loss) == pytest.approx(sum(float((e**2).mean()) for e in errors), rel=1e-5)
    wanted = (errors[0].abs() + errors[1].abs()) / 2
    assert torch.allclose(metrics["priority"], wanted, atol=1e-5)


def test_noise_is_clipped_and_can_be_turned_off() -> None:
    learn = dict(noise_sigma=5.0, noise_range=dict(min=-0.1, max=0.2))
    policy = policy_of("td3", learn=learn)
    batch = policy._batch(Rows(batch_of("td3")))
    policy._add_noise(batch)
    noise = batch["next_noise"].numpy()
    assert (noise.min(), noise.max()) == pytest.approx((-0.1, 0.2))
    without = policy_of("td3", learn=dict(noise=False))
    batch = without._batch(Rows(batch_of("td3")))
    without._add_noise(batch)
    assert "next_noise" not in batch


def test_actor_and_targets_wait() -> None:
    policy, batch = policy_of("td3"), Rows(batch_of("td3"))
    for k in range(1, 7):
        actor, critic = weights_of(policy, "actor"), weights_of(policy, "critic")
        target = [p.clone() for p in policy._target.module.parameters()]
        output = policy.learn_mode.forward(batch)
        waits = k % 2 == 1
        assert same(actor, weights_of(policy, "actor")) is waits
        assert same(target, list(policy._target.module.parameters())) is waits
        assert ("actor_loss" not in output) is waits
        assert not same(critic, weights_of(policy, "critic"))
        assert np.isfinite(float(output["total_loss"]))
