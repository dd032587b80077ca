"""The distributional critic of D4PG against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.utils.batch import Rows
from policy.continuous import batch_of, policy_of, shaken_target

V_MIN, V_MAX, N_ATOM = -3.0, 3.0, 11


def distribution_of(model: Any, obs: np.ndarray, action: Any) -> np.ndarray:
    x = {"obs": torch.as_tensor(obs), "action": torch.as_tensor(action)}
    with torch.no_grad():
        return model(x, mode="compute_critic")["distribution"][:, 0].double().numpy()


def projected(p: np.ndarray, reward: float, discount: float) -> np.ndarray:
    atoms, out = np.linspace(V_MIN, V_MAX, N_ATOM), np.zeros(N_ATOM)
    width = atoms[1] - atoms[0]
    for probability, atom in zip(p, atoms, strict=True):
        moved = min(max(reward + discount * atom, V_MIN), V_MAX)
        out += probability * np.maximum(0.0, 1.0 - np.abs(moved - atoms) / width)
    return out


def test_critic_loss_by_hand() -> None:
    policy = policy_of("d4pg", learn=dict(learning_rate_critic=1e-12))
    target_model, batch = shaken_target(policy), batch_of("d4pg")
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    with torch.no_grad():
        next_obs = torch.as_tensor(batch["next_obs"])
        next_action = target_model(next_obs, mode="compute_actor")["action"]
    after = distribution_of(target_model, batch["next_obs"], next_action)
    now = distribution_of(policy._model, batch["obs"], batch["action"])
    rows = zip(after, batch["reward"], batch["discount"], now, strict=True)
    wanted = np.array([-(projected(p, r, d) * np.log(q)).sum() for p, r, d, q in rows])
    output = policy.learn_mode.forward(Rows({**batch, "weight": weight}))
    assert output["priority"].numpy() == pytest.approx(wanted, rel=1e-4)
    assert float(output["critic_loss"]) == pytest.approx((weight * wanted).mean(), rel=1e-4)


def test_actor_climbs_the_mean() -> None:
    policy, batch = policy_of("d4pg", learn=dict(learning_rate_critic=1e-12)), batch_of("d4pg")
    with torch.no_grad():
        obs = torch.as_tensor(batch["obs"])
        action = policy._model(obs, mode="compute_actor")["action"]
    mean = distribution_of(policy._model, batch["obs"], action) @ np.linspace(V_MIN, V_MAX, N_ATOM)
    output = policy.learn_mode.forward(Rows(batch))
    assert float(output["actor_loss"]) == pytest.approx(-mean.mean(), abs=1e-5)


def test_defaults() -> None:
    policy = policy_of("d4pg")
    assert (policy.cfg.nstep, policy.cfg.priority, policy.cfg.priority_IS_weight) == (3, True, True)
    assert (policy._v_min, policy._v_max) == (V_MIN, V_MAX)
    assert set(policy.learn_mode.monitor_vars()) <= set(
        policy.learn_mode.forward(Rows(batch_of("d4pg")))
    )


def test_critic_that_is_sure_and_wrong_still_learns() -> None:
    policy = policy_of("d4pg")
    batch = policy._batch(Rows({**batch_of("d4pg"), "reward": np.full(16, 9.0, np.float32)}))
    weight, bias = list(policy._model.critic_head.parameters())[-2:]
    with torch.no_grad():
        weight.zero_()
        bias.copy_(torch.tensor([100.0] + [0.0] * (N_ATOM - 1)))
    loss, _ = policy._critic_loss(batch)
    loss.backward()
    assert bias.grad[[0, -1]].tolist() == pytest.approx([1, -1], abs=1e-3)
