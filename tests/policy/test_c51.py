from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import create_policy
from ding.utils.errors import ConfigError
from policy.distributional import arrays, batch_for_loss, policy_of

ATOMS = np.linspace(-3.0, 3.0, 7)


def projected(p: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Every atom's probability goes to its two neighbours on the grid of step 1."""
    out = np.zeros(7)
    for probability, atom in zip(p, atoms, strict=True):
        for i, centre in enumerate(ATOMS):
            out[i] += probability * max(0.0, 1 - abs(np.clip(atom, -3, 3) - centre))
    return out


@pytest.mark.parametrize("kind", ["c51", "rainbow"])
@pytest.mark.parametrize("double_q", [True, False])
def test_loss_by_hand(kind: str, double_q: bool) -> None:
    policy = policy_of(kind, learn=dict(double_q=double_q))
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    batch = batch_for_loss(policy, weight=weight)
    now = arrays(policy._model(batch["obs"]))
    picker = arrays(policy._model(batch["next_obs"]))
    value = arrays(policy._target.module(batch["next_obs"]))
    errors = []
    for i in range(16):
        best = int(np.argmax((picker if double_q else value)["logit"][i]))
        reward, discount = float(batch["reward"][i]), float(batch["discount"][i])
        goal = projected(value["distribution"][i, best], reward + discount * ATOMS)
        assert goal.sum() == pytest.approx(1.0, abs=1e-5)
        errors.append(-(goal * np.log(now["distribution"][i, int(batch["action"][i])])).sum())
    loss, metrics = policy._loss(batch)
    assert float(loss.detach()) == pytest.approx((weight * errors).mean(), rel=1e-4)
    assert metrics["priority"].numpy() == pytest.approx(np.array(errors), rel=1e-4)


def test_value_is_learned_beyond_no_bound() -> None:
    """A reward of 9 is more than v_max: the value goes to 3 and not further."""
    policy = policy_of("c51", learn=dict(learning_rate=0.01))
    batch = batch_for_loss(policy, reward=np.full(16, 9.0, np.float32))
    for _ in range(200):
        policy._step(batch)
    q = policy._model(batch["obs"])["logit"]
    taken = q.gather(1, batch["action"].unsqueeze(1))
    assert torch.allclose(taken, torch.full_like(taken, 3.0), atol=0.1)


@pytest.mark.parametrize(
    ("model", "pattern"),
    [
        (dict(v_min=3.0, v_max=3.0), r"policy.model.v_min = 3.0 is not below policy.model.v_max"),
        (dict(n_atom=1), r"policy.model.n_atom = 1: must be at least 2"),
    ],
)
def test_bad_settings(model: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        policy_of("c51", model=model)


def test_atoms_have_defaults() -> None:
    policy: Any = create_policy(dict(type="c51", model=dict(obs_shape=3, action_shape=2)))
    support = policy._model.head.support
    assert (len(support), float(support[0]), float(support[-1])) == (51, -10.0, 10.0)


@pytest.mark.parametrize("kind", ["c51", "rainbow"])
def test_network_that_is_sure_and_wrong_still_learns(kind: str) -> None:
    """All probability at -3, all return at 3: the gradient of the bias is p - m."""
    policy = policy_of(kind)
    batch = batch_for_loss(policy, reward=np.full(16, 9.0, np.float32))
    head = policy._model.head
    names = ("main",) if kind == "c51" else ("value", "advantage")
    parameters = {n: p for n, p in head.named_parameters() if n.startswith(names)}
    is_bias = [n for n in parameters if n.startswith(names[0]) and n.endswith(("bias", "bias_mu"))]
    bias = parameters[is_bias[-1]]
    with torch.no_grad():
        for parameter in parameters.values():
            parameter.zero_()
        bias.copy_(torch.tensor([100.0, 0, 0, 0, 0, 0, 0]).repeat(len(bias) // 7))
    loss, _ = policy._loss(batch)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(100.0, rel=1e-2)
    assert bias.grad.reshape(-1, 7).sum(0)[[0, -1]].tolist() == pytest.approx([1, -1], abs=1e-3)


def test_network_of_ones_own_may_give_probabilities_only() -> None:
    policy = policy_of("c51")
    batch = batch_for_loss(policy)
    wanted = float(policy._loss(batch)[0].detach())
    forward = policy._model.forward
    policy._model.forward = lambda obs: {k: forward(obs)[k] for k in ("logit", "distribution")}
    assert float(policy._loss(batch)[0].detach()) == pytest.approx(wanted, rel=1e-5)
