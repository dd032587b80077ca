"""What holds for all distributional algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.worker import AdvancedReplayBuffer, NaiveReplayBuffer, SampleCollector
from policy.distributional import KINDS, policy_of
from policy.fakes import batch_of, losses_of
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, envs, states

kinds = pytest.mark.parametrize("kind", KINDS)


def rate(kind: str, value: float = 0.01) -> dict[str, float]:
    return {"learning_rate_quantile" if kind == "fqf" else "learning_rate": value}


@kinds
def test_one_batch_is_overfitted(kind: str) -> None:
    policy = policy_of(kind, learn=rate(kind))
    batch = batch_of("dqn")
    batch["discount"][:] = 0  # targets that stand still
    losses = losses_of(policy, batch, 300, "quantile_loss" if kind == "fqf" else "total_loss")
    # Cross entropy ends at the entropy of the targets, not at zero.
    least = 0.6 * losses[0] if kind in ("c51", "rainbow") else 0.3 * losses[0]
    assert np.mean(losses[-20:]) < least
    with torch.no_grad():
        q = policy._model.eval()(torch.from_numpy(batch["obs"]))["logit"].numpy()
    assert q[np.arange(16), batch["action"]] == pytest.approx(batch["reward"], abs=0.6)


@kinds
def test_outputs_name_what_is_monitored(kind: str) -> None:
    policy = policy_of(kind)
    output = policy.learn_mode.forward(Rows(batch_of("dqn")))
    assert set(policy.learn_mode.monitor_vars()) <= set(output)
    assert output["priority"].shape == (16,)
    assert (output["priority"] >= 0).all()
    assert not any(v.requires_grad for v in output.values() if isinstance(v, torch.Tensor))


@kinds
def test_target_network_is_left_alone(kind: str) -> None:
    policy = policy_of(kind)
    before = [p.clone() for p in policy._target.module.parameters()]
    losses_of(policy, batch_of("dqn"), 3)
    after = list(policy._target.module.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert not any(p.requires_grad or p.grad is not None for p in after)


@kinds
def test_learn_state_continues_exactly(kind: str) -> None:
    batch = batch_of("dqn")
    policy = policy_of(kind, learn=dict(target_update_freq=4))
    losses_of(policy, batch, 6)
    state = torch.utils._pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf,
        policy.learn_mode.state_dict(),
    )
    torch.manual_seed(5)
    wanted = losses_of(policy, batch, 5)
    other = policy_of(kind, seed=9, learn=dict(target_update_freq=4))
    other.learn_mode.load_state_dict(state)
    torch.manual_seed(5)
    assert losses_of(other, batch, 5) == wanted
    obs = ByEnv(np.arange(16), batch["obs"])
    actions = [stacked_of(p.eval_mode.forward(obs))[1]["action"] for p in (policy, other)]
    assert np.array_equal(actions[0], actions[1])


@kinds
def test_acting_follows_learning(kind: str) -> None:
    policy = policy_of(kind, learn=rate(kind))
    losses_of(policy, batch_of("dqn"), 20)
    obs = batch_of("dqn", seed=1)["obs"]
    action = stacked_of(policy.eval_mode.forward(ByEnv(np.arange(16), obs)))[1]["action"]
    with torch.no_grad():
        q = policy._model.eval()(torch.from_numpy(obs))["logit"]
    assert np.array_equal(action, q.argmax(dim=1).numpy())


@kinds
def test_epsilon_explores(kind: str) -> None:
    policy = policy_of(kind)
    obs = ByEnv(np.arange(2000), np.zeros((2000, 3), dtype=np.float32))
    action = stacked_of(policy.collect_mode.forward(obs, eps=1.0))[1]["action"]
    assert np.bincount(action, minlength=4) / 2000 == pytest.approx([0.25] * 4, abs=0.05)


@kinds
def test_images(kind: str) -> None:
    model = dict(encoder_hidden_size_list=[4, 4, 4, 8])
    policy = policy_of(kind, obs=[1, 36, 36], model=model)
    frames = np.random.default_rng(0).integers(0, 255, (2, 16, 1, 36, 36), dtype=np.uint8)
    batch = {**batch_of("dqn"), "obs": frames[0], "next_obs": frames[1]}
    assert np.isfinite(losses_of(policy, batch, 2)).all()
    assert len(policy.collect_mode.forward(ByEnv(np.arange(16), frames[0]))) == 16


@kinds
@pytest.mark.parametrize("terminates", [True, False])
def test_known_values_with_and_without_a_time_limit(kind: str, terminates: bool) -> None:
    if kind == "qrdqn" and not terminates:
        pytest.skip("its lowest quantiles lag far behind a value that feeds on itself")
    model: dict[str, Any] = dict(obs_shape=LENGTH + 1, action_shape=2)
    if kind in ("c51", "rainbow"):
        model |= dict(v_min=0.0, v_max=12.0, n_atom=25)
    learn = dict(target_update_freq=10, batch_size=64, **rate(kind))
    cfg = dict(discount_factor=GAMMA, nstep=1, priority=False, priority_IS_weight=False)
    policy = policy_of(kind, model=model, learn=learn, **cfg)
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=2000))
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        buffer.push(collector.collect(n_sample=400, policy_kwargs={"eps": 0.5}))
    for _ in range(700):
        policy.learn_mode.forward(buffer.sample(64))
    with torch.no_grad():
        value = policy._model.eval()(states())["logit"].amax(dim=1).numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=0.6)
    else:
        assert value[0] == pytest.approx(10.0, abs=1.0)


@kinds
def test_prioritised_replay(kind: str) -> None:
    policy = policy_of(kind, priority=True, priority_IS_weight=True)
    buffer = AdvancedReplayBuffer(dict(replay_buffer_size=64))
    buffer.push(Rows(batch_of("dqn", n=64)), cur_collector_envstep=0)
    samples: Any = buffer.sample(16, 0)
    assert policy._batch(samples)["weight"].shape == (16,)
    priority = policy.learn_mode.forward(samples)["priority"]
    ids = {key: [s[key] for s in samples] for key in ("replay_unique_id", "replay_buffer_idx")}
    buffer.update({**ids, "priority": priority})


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
@kinds
def test_compiled_updates_are_the_eager_ones(kind: str) -> None:
    settings: dict[str, Any] = dict(
        grad_clip_type="clip_norm", grad_clip_value=0.1, target_update_freq=2
    )
    batch = {**batch_of("dqn"), "weight": np.linspace(0, 1, 16, dtype=np.float32)}
    eager = losses_of(policy_of(kind, learn=settings), batch, 6)
    compiled = losses_of(policy_of(kind, learn=dict(compile=True, **settings)), batch, 6)
    assert compiled == pytest.approx(eager, abs=1e-4)
