"""P-DQN: values of types given arguments, and arguments that climb them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy.acting import hybrid_epsilon_greedy
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from policy.continuous import (
    batch_of,
    learn_critic_first,
    losses_of,
    policy_of,
    same,
    shaken_target,
    weights_of,
)

VALUES, ARGUMENTS = ("encoder", "head"), ("args_encoder", "args_head")


def arguments_of(model: Any, obs: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return model(torch.as_tensor(obs), mode="compute_continuous")["action_args"].numpy()


def q_of(model: Any, obs: np.ndarray, args: np.ndarray) -> np.ndarray:
    x = {"state": torch.as_tensor(obs), "action_args": torch.as_tensor(args)}
    with torch.no_grad():
        return model(x, mode="compute_discrete")["logit"].numpy()


@pytest.mark.parametrize("double_q", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_losses_by_hand(double_q: bool, masked: bool) -> None:
    policy = policy_of("pdqn", learn=dict(double_q=double_q, dis_learning_rate=1e-12))
    target_model, batch = shaken_target(policy), batch_of("pdqn")
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    taken = q_of(policy._model, batch["obs"], batch["action"]["action_args"])
    next_args = arguments_of(target_model, batch["next_obs"])
    next_q = q_of(target_model, batch["next_obs"], next_args)
    picking = q_of(policy._model, batch["next_obs"], next_args) if double_q else next_q
    allowed = np.ones((16, 3), dtype=np.int8)
    if masked:
        allowed[np.arange(16), picking.argmax(axis=1)] = 0
    errors = []
    for i in range(16):
        value = next_q[i, int(np.argmax(np.where(allowed[i], picking[i], -np.inf)))]
        target = batch["reward"][i] + batch["discount"][i] * value
        errors.append(taken[i, batch["action"]["action_type"][i]] - target)
    climbed = q_of(policy._model, batch["obs"], arguments_of(policy._model, batch["obs"]))
    if masked:
        for key in ("obs", "next_obs"):
            batch[key] = {"obs": batch[key], "action_mask": allowed}
    output = policy.learn_mode.forward(Rows({**batch, "weight": weight}))
    wanted = (weight * np.square(errors)).mean()
    assert float(output["q_loss"]) == pytest.approx(wanted, rel=1e-4)
    assert output["priority"].numpy() == pytest.approx(np.abs(errors), rel=1e-4)
    assert float(output["args_loss"]) == pytest.approx(-climbed.sum(axis=1).mean(), rel=1e-4)
    assert set(policy.learn_mode.monitor_vars()) <= set(output)


def test_each_loss_moves_its_own_network() -> None:
    for dis, cont, moves in ((0.01, 1e-30, VALUES), (1e-30, 0.01, ARGUMENTS)):
        learn = dict(dis_learning_rate=dis, cont_learning_rate=cont)
        policy = policy_of("pdqn", learn=learn)
        before = {names: weights_of(policy, *names) for names in (VALUES, ARGUMENTS)}
        losses_of(policy, batch_of("pdqn"), 2, "total_loss")
        for names, old in before.items():
            assert same(old, weights_of(policy, *names)) is (names != moves)


def test_training_by_turns() -> None:
    policy, batch = policy_of("pdqn", learn=dict(update_circle=4)), Rows(batch_of("pdqn"))
    keys = [set(policy.learn_mode.forward(batch)) & {"q_loss", "args_loss"} for _ in range(8)]
    assert keys == [{"q_loss"}, {"q_loss"}, {"args_loss"}, {"args_loss"}] * 2


def test_one_batch_is_overfitted() -> None:
    policy, batch = policy_of("pdqn", learn=dict(dis_learning_rate=0.01)), batch_of("pdqn")
    batch["discount"][:] = 0
    losses = losses_of(policy, batch, 150, "q_loss")
    assert losses[-1] < 0.1 * losses[0]


def test_finds_the_best_type_and_argument() -> None:
    """A bandit: type 1 pays most, with the right argument; the other one is of no use to it."""
    mask = dict(multi_pass=True, action_mask=[[1, 0], [0, 1], [0, 0]])
    policy, batch = policy_of("pdqn", model=mask), batch_of("pdqn", n=256)
    rng = np.random.default_rng(0)
    kind, args = rng.integers(0, 3, 256), rng.uniform(-1, 1, (256, 2)).astype(np.float32)
    batch["action"] = {"action_type": kind, "action_args": args}
    batch["reward"] = np.where(kind == 1, 1 - 2 * np.abs(args[:, 1] + 0.5), 0).astype(np.float32)
    batch["discount"][:] = batch["obs"][:] = 0
    learn_critic_first(policy, batch)
    data = ByEnv(np.arange(256), batch["obs"])
    action = stacked_of(policy.eval_mode.forward(data))[1]["action"]
    assert (action["action_type"] == 1).mean() > 0.95
    chosen = q_of(policy._model, batch["obs"], action["action_args"])[0, 1]
    grid = np.linspace(-1, 1, 256, dtype=np.float32)
    best = q_of(policy._model, batch["obs"], np.stack([grid, grid], axis=1))[:, 1].max()
    assert chosen == pytest.approx(best, abs=0.05)


def test_acting() -> None:
    policy, batch = policy_of("pdqn"), batch_of("pdqn", n=64)
    losses_of(policy, batch, 5, "total_loss")
    data = ByEnv(np.arange(64), batch["obs"])
    args = arguments_of(policy._model, batch["obs"])
    best = q_of(policy._model, batch["obs"], args).argmax(axis=1)
    action = stacked_of(policy.eval_mode.forward(data))[1]["action"]
    assert np.array_equal(action["action_type"], best)
    assert np.allclose(action["action_args"], args, atol=1e-6)
    noiseless = policy_of("pdqn", collect=dict(noise=False))
    action = stacked_of(noiseless.collect_mode.forward(data))[1]["action"]
    args = arguments_of(noiseless._model, batch["obs"])
    assert np.allclose(action["action_args"], args, atol=1e-6)
    row = policy.collect_mode.forward({7: batch["obs"][0]}, eps=0.5)[7]["action"]
    assert set(row) == {"action_type", "action_args"}
    assert policy.command_mode.get_setting_collect({"envstep": 0})["eps"] == pytest.approx(0.95)


def test_exploring_draws_type_and_arguments() -> None:
    rng, n = np.random.default_rng(0), 6000
    q = np.tile(np.array([0.0, 1.0, 0.0], dtype=np.float32), (n, 1))
    args = np.full((n, 2), 0.3, dtype=np.float32)
    action = hybrid_epsilon_greedy(q, args, eps=0.6, sigma=0.0, rng=rng)
    counts = np.bincount(action["action_type"]) / n
    assert counts == pytest.approx([0.2, 0.6, 0.2], abs=0.03)
    moved = (action["action_args"] != np.float32(0.3)).any(axis=1)
    assert moved.mean() == pytest.approx(0.6, abs=0.03)
    assert action["action_args"][moved].std() == pytest.approx(3**-0.5, abs=0.03)
    assert action["action_args"].dtype == np.float32


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    results = [
        losses_of(policy_of("pdqn", learn=dict(compile=c)), batch_of("pdqn"), 4, "total_loss")
        for c in (False, True)
    ]
    assert results[1] == pytest.approx(results[0], abs=1e-4)


def test_state_continues_exactly() -> None:
    batch, learn = batch_of("pdqn"), dict(update_circle=4)
    policy, other = policy_of("pdqn", learn=learn), policy_of("pdqn", seed=9, learn=learn)
    losses_of(policy, batch, 5, "total_loss")
    state = torch.utils._pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf,
        policy.learn_mode.state_dict(),
    )
    wanted = losses_of(policy, batch, 4, "total_loss")
    other.learn_mode.load_state_dict(state)
    assert losses_of(other, batch, 4, "total_loss") == wanted


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(learn=dict(learning_rate=0.1)), "has no effect.*dis_learning_rate"),
        (dict(learn=dict(update_circle=3)), "update_circle = 3.*even"),
        (dict(learn=dict(dis_learning_rate=0.0)), "dis_learning_rate"),
        (dict(collect=dict(noise_sigma=-1.0)), "noise_sigma"),
        (dict(model=dict(action_shape=3)), "action_type_shape"),
    ],
)
def test_settings_must_make_sense(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        policy_of("pdqn", **cfg)
