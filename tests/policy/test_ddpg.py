"""DDPG and what its variants take from it; the losses by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from ding.envs import BaseEnvManager
from ding.policy.acting import noisy
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from ding.worker import NaiveReplayBuffer, SampleCollector
from policy.continuous import (
    batch_of,
    learn_critic_first,
    losses_of,
    policy_of,
    same,
    shaken_target,
    weights_of,
)
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, FiveSteps

KINDS = ["ddpg", "td3", "d4pg"]
VARIANTS = [*KINDS, "paddpg"]


def q_of(model: Any, obs: np.ndarray, action: Any) -> np.ndarray:
    x = {"obs": torch.as_tensor(obs), "action": torch.as_tensor(action)}
    with torch.no_grad():
        return model(x, mode="compute_critic")["q_value"].numpy()


def action_of(model: Any, obs: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return model(torch.as_tensor(obs), mode="compute_actor")["action"].numpy()


def test_losses_by_hand() -> None:
    policy = policy_of("ddpg", learn=dict(learning_rate_critic=1e-12))
    target_model = shaken_target(policy)
    batch = batch_of("ddpg")
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    next_q = q_of(target_model, batch["next_obs"], action_of(target_model, batch["next_obs"]))
    error = q_of(policy._model, batch["obs"], batch["action"]) - (
        batch["reward"] + batch["discount"] * next_q
    )
    climbed = q_of(policy._model, batch["obs"], action_of(policy._model, batch["obs"]))
    output = policy.learn_mode.forward(Rows({**batch, "weight": weight}))
    assert float(output["critic_loss"]) == pytest.approx((weight * error**2).mean(), rel=1e-5)
    assert output["priority"].numpy() == pytest.approx(np.abs(error), rel=1e-4)
    assert float(output["actor_loss"]) == pytest.approx(-climbed.mean(), rel=1e-4)
    assert float(output["total_loss"]) == pytest.approx(
        float(output["critic_loss"] + output["actor_loss"]), rel=1e-5
    )


@pytest.mark.parametrize("kind", VARIANTS)
def test_each_loss_moves_its_own_network(kind: str) -> None:
    for rate, moved in (("learning_rate_critic", "critic"), ("learning_rate_actor", "actor")):
        still = ({"learning_rate_critic", "learning_rate_actor"} - {rate}).pop()
        policy = policy_of(kind, learn={rate: 0.01, still: 1e-30, "actor_update_freq": 1})
        actor = ("actor", "type_head", "args_head")
        before = weights_of(policy, "critic"), weights_of(policy, *actor)
        losses_of(policy, batch_of(kind), 2, "total_loss")
        after = weights_of(policy, "critic"), weights_of(policy, *actor)
        stays = [same(a, b) for a, b in zip(before, after, strict=True)]
        assert stays == [moved != "critic", moved != "actor"]


@pytest.mark.parametrize("kind", VARIANTS)
def test_one_batch_is_overfitted(kind: str) -> None:
    learn = dict(learning_rate_critic=0.01, noise=False)
    policy = policy_of(kind, learn=learn)
    batch = batch_of(kind)
    batch["discount"][:] = 0
    losses = losses_of(policy, batch, 150, "critic_loss")
    # A distribution's cross entropy does not fall to zero, but to the target's own entropy.
    assert losses[-1] < (0.6 if kind == "d4pg" else 0.1) * losses[0]


def test_actor_finds_the_best_action() -> None:
    """Reward is highest at action (0.5, -0.5): a bandit."""
    policy = policy_of("ddpg", model=dict(critic_head_hidden_size=32))
    batch = batch_of("ddpg", n=256)
    batch["action"] = np.random.default_rng(0).uniform(-1, 1, (256, 2)).astype(np.float32)
    batch["reward"] = -np.square(batch["action"] - [0.5, -0.5]).sum(axis=1).astype(np.float32)
    batch["discount"][:] = batch["obs"][:] = 0
    learn_critic_first(policy, batch)
    action = action_of(policy._model, batch["obs"])
    assert action.mean(axis=0) == pytest.approx([0.5, -0.5], abs=0.15)


def test_target_by_theta_and_by_copies() -> None:
    batch = batch_of("ddpg")
    policy = policy_of("ddpg")
    before = [p.clone() for p in policy._target.module.parameters()]
    losses_of(policy, batch, 1, "critic_loss")
    for old, new, source in zip(
        before, policy._target.module.parameters(), policy._model.parameters(), strict=True
    ):
        assert torch.allclose(new, old + 0.005 * (source - old), atol=1e-7)
    copied = policy_of("ddpg", learn=dict(target_update_freq=2))
    for k in range(1, 5):
        losses_of(copied, batch, 1, "critic_loss")
        pairs = zip(copied._target.module.parameters(), copied._model.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs) == (k % 2 == 0)


def test_collecting_explores_and_evaluating_does_not() -> None:
    policy = policy_of("ddpg", collect=dict(noise_sigma=0.2))
    obs = np.tile(batch_of("ddpg")["obs"][:1], (4000, 1))
    data = ByEnv(np.arange(4000), obs)
    mean = stacked_of(policy.eval_mode.forward(data))[1]["action"]
    assert np.allclose(mean, action_of(policy._model, obs), atol=1e-6)
    action = stacked_of(policy.collect_mode.forward(data))[1]["action"]
    assert action.dtype == np.float32 and np.abs(action).max() <= 1
    assert (action - mean).std(axis=0) == pytest.approx([0.2, 0.2], rel=0.1)
    assert noisy(np.full((50, 1), 0.99, np.float32), 1.0, np.random.default_rng(0)).max() == 1.0
    assert "action" in policy.collect_mode.forward({3: obs[0]})[3]


@pytest.mark.parametrize("kind", VARIANTS)
def test_state_continues_exactly(kind: str) -> None:
    batch, key = batch_of(kind), "total_loss"
    learn = dict(actor_update_freq=2)  # saved in the middle of a turn
    policy = policy_of(kind, learn=learn)
    losses_of(policy, batch, 5, key)
    state = torch.utils._pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf,
        policy.learn_mode.state_dict(),
    )
    torch.manual_seed(5)
    wanted = losses_of(policy, batch, 4, key)
    other = policy_of(kind, seed=9, learn=learn)
    other.learn_mode.load_state_dict(state)
    torch.manual_seed(5)
    assert losses_of(other, batch, 4, key) == wanted


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", VARIANTS[1:])  # TD3 runs all of DDPG
def test_compiled_updates_are_the_eager_ones(kind: str) -> None:
    clip: dict[str, Any] = dict(grad_clip_type="clip_norm", grad_clip_value=0.1, noise=True)
    results = []
    for compiled in (False, True):
        policy = policy_of(kind, learn=dict(compile=compiled, **clip))
        torch.manual_seed(3)
        results.append(losses_of(policy, batch_of(kind), 4, "total_loss"))
    assert results[1] == pytest.approx(results[0], abs=1e-4)


@pytest.mark.parametrize("kind", VARIANTS)
def test_images(kind: str) -> None:
    model = dict(encoder_hidden_size_list=[4, 4, 4, 8])
    policy = policy_of(kind, obs=[1, 40, 40], model=model)
    batch = batch_of(kind, n=4)
    frames = np.random.default_rng(0).integers(0, 255, (2, 4, 1, 40, 40)).astype(np.uint8)
    batch |= {"obs": frames[0], "next_obs": frames[1]}
    assert all(np.isfinite(losses_of(policy, batch, 3, "total_loss")))
    action = stacked_of(policy.eval_mode.forward(ByEnv(np.arange(4), frames[0])))[1]["action"]
    assert (action["action_args"] if kind == "paddpg" else action).shape == (4, 2)


@pytest.mark.parametrize("terminates", [True, False])
@pytest.mark.parametrize(("kind", "nstep"), [("ddpg", 1), ("d4pg", 3)])
def test_learns_the_known_value(kind: str, nstep: int, terminates: bool) -> None:
    learn = dict(learning_rate_critic=0.01, target_theta=0.1, noise=False)
    model: dict[str, Any] = dict(action_shape=1, critic_head_hidden_size=32)
    if kind == "d4pg":
        model |= dict(v_min=0.0, v_max=12.0, n_atom=25)
    settings = dict(discount_factor=GAMMA, nstep=nstep, priority=False, priority_IS_weight=False)
    policy = policy_of(kind, obs=LENGTH + 1, learn=learn, model=model, **settings)
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=2000, nstep=nstep, discount_factor=GAMMA))
    envs = BaseEnvManager([partial(FiveSteps, terminates, True)] * 4, {})
    with SampleCollector(env=envs, policy=policy.collect_mode) as collector:
        buffer.push(collector.collect(n_sample=400))
    for _ in range(300):
        policy.learn_mode.forward(buffer.sample(64))
    x = {"obs": torch.eye(LENGTH + 1), "action": torch.zeros(LENGTH + 1, 1)}
    with torch.no_grad():
        q = policy._model(x, mode="compute_critic")["q_value"]
    value = (q[0] if isinstance(q, list) else q).reshape(-1).numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.6)
    else:
        assert value[0] == pytest.approx(10.0, abs=0.8)


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(learn=dict(learning_rate=0.1)), "learning_rate = 0.1 has no effect.*_actor"),
        (dict(learn=dict(actor_update_freq=0)), "actor_update_freq"),
        (dict(learn=dict(target_theta=2.0)), "target_theta"),
        (dict(learn=dict(target_theta=0.1, target_update_freq=3)), "set exactly one"),
        (dict(learn=dict(noise_sigma=-1.0)), "learn.noise_sigma"),
        (dict(learn=dict(noise_range=dict(min=1.0, max=0.5))), "noise_range.max"),
        (dict(learn=dict(learning_rate_actor=0.0)), "learning_rate_actor"),
        (dict(collect=dict(noise_sigma=-0.1)), "collect.noise_sigma"),
        (dict(action_space="hybrid"), "'paddpg' and 'pdqn'"),
    ],
)
def test_settings_must_make_sense(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        policy_of("ddpg", **cfg)
