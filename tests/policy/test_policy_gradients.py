"""What holds for all policy-gradient algorithms alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from policy.gradient_fakes import (
    N_ACTION,
    losses_of,
    moved,
    policy_of,
    samples_of,
    steps_of,
    weights_of,
)

NAMES = ["a2c", "pg", "impala", "ppo", "ppo_offpolicy", "ppg", "acer"]
CONTINUOUS = ["a2c", "pg", "impala", "ppo", "ppo_offpolicy"]


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_plain_numbers_and_name_what_is_monitored(name: str) -> None:
    policy = policy_of(name, learn=dict(aux_freq=1) if name == "ppg" else {})
    output = policy.learn_mode.forward(samples_of(policy))
    rows = [output] if isinstance(output, dict) else output
    found = set().union(*rows)
    assert set(policy.learn_mode.monitor_vars()) <= found
    assert not any(v.requires_grad for row in rows for v in row.values() if torch.is_tensor(v))


@pytest.mark.parametrize("name", NAMES)
def test_plain_list_of_dicts_trains_the_same(name: str) -> None:
    losses = []
    for as_list in (False, True):
        policy = policy_of(name)
        samples: Any = samples_of(policy)
        output = policy.learn_mode.forward(list(samples) if as_list else samples)
        losses.append(float((output if isinstance(output, dict) else output[0])["total_loss"]))
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_learn_state_continues_exactly(name: str) -> None:
    policy = policy_of(name)
    samples = samples_of(policy)
    losses_of(policy, samples, 3)
    state = torch.utils._pytree.tree_map(
        lambda leaf: leaf.clone() if torch.is_tensor(leaf) else leaf, policy.learn_mode.state_dict()
    )
    rng = policy.rng.bit_generator.state
    wanted = losses_of(policy, samples, 6)
    other = policy_of(name, seed=9)
    other.learn_mode.load_state_dict(state)
    other.rng.bit_generator.state = rng
    assert losses_of(other, samples, 6) == wanted
    obs = ByEnv(np.arange(4), samples.columns["obs"].reshape(-1, 3)[:4])
    actions = [stacked_of(p.eval_mode.forward(obs))[1]["action"] for p in (policy, other)]
    assert np.array_equal(actions[0], actions[1])


@pytest.mark.parametrize("name", NAMES)
def test_acting_draws_from_the_network_as_it_is_now(name: str) -> None:
    policy = policy_of(name)
    losses_of(policy, samples_of(policy), 5)
    obs = np.repeat(steps_of()["obs"][:1], 4000, axis=0)
    mode = {} if name == "pg" else {"mode": "compute_actor"}
    with torch.no_grad():
        logit = policy._model(torch.from_numpy(obs[:1]), **mode)["logit"]
    _, output = stacked_of(policy.collect_mode.forward(ByEnv(np.arange(4000), obs)))
    share = np.bincount(output["action"], minlength=N_ACTION) / 4000
    assert share == pytest.approx(logit.softmax(-1)[0].numpy(), abs=0.04)
    assert output["logit"][:1] == pytest.approx(logit.numpy(), abs=1e-5)
    _, best = stacked_of(policy.eval_mode.forward(ByEnv(np.arange(4000), obs)))
    assert (best["action"] == int(logit.argmax())).all()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_actions(name: str) -> None:
    policy = policy_of(name, action_space="continuous", action_shape=2)
    samples = samples_of(policy, continuous=True)
    assert np.isfinite(losses_of(policy, samples, 5)).all()
    obs = {5: np.zeros(3, dtype=np.float32), 2: np.ones(3, dtype=np.float32)}
    for output in (policy.collect_mode.forward(obs), policy.eval_mode.forward(obs)):
        assert list(output) == [5, 2]
        assert output[5]["action"].shape == (2,)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_several_discrete_actions(name: str) -> None:
    policy = policy_of(name, action_shape=[4, 3])
    steps = steps_of()
    second = np.random.default_rng(1)
    steps["logit"] = (steps["logit"], second.standard_normal((32, 3)).astype(np.float32))
    steps["action"] = np.stack([steps["action"], second.integers(0, 3, 32)], axis=1)
    samples = policy.collect_mode.get_train_sample(Rows(steps))
    assert np.isfinite(losses_of(policy, samples, 3)).all()
    for mode in (policy.collect_mode, policy.eval_mode):
        _, output = stacked_of(mode.forward(ByEnv(np.arange(32), steps["obs"])))
        assert output["action"].shape == (32, 2)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_learns(name: str) -> None:
    policy = policy_of(name, learn=dict(aux_freq=2) if name == "ppg" else {})
    before = weights_of(policy)
    losses_of(policy, samples_of(policy), 2)
    assert moved(before, weights_of(policy)) == set(before)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["a2c", "pg", "impala", "ppo_offpolicy", "ppg", "acer"])
def test_compiled_updates_are_the_eager_ones(name: str) -> None:
    losses = []
    for compiled in (False, True):
        policy = policy_of(name, learn=dict(compile=compiled))
        losses.append(losses_of(policy, samples_of(policy), 4))
        # Tracing a network whose encoder has two names must leave its parameters as they are.
        assert all(type(p) is nn.Parameter for p in policy._model.parameters())
    assert losses[1] == pytest.approx(losses[0], abs=1e-4, rel=1e-4)


BAD = [
    ("a2c", dict(action_space="hybrid"), "action_space"),
    ("a2c", dict(priority=True), "priority"),
    ("a2c", dict(nstep=3), "nstep"),
    ("a2c", dict(collect=dict(gae_lambda=1.5)), "gae_lambda"),
    ("a2c", dict(learn=dict(batch_size=64)), "batch_size"),
    ("pg", dict(random_collect_size=10), "random_collect_size"),
    ("impala", dict(collect=dict(unroll_len=1)), "unroll_len"),
    ("impala", dict(nstep=2), "nstep"),
    ("impala", dict(random_collect_size=10), "random_collect_size"),
    ("impala", dict(learn=dict(lambda_=2.0)), "lambda_"),
    ("impala", dict(learn=dict(rho_clip_ratio=-1.0)), "rho_clip_ratio"),
    ("ppo_offpolicy", dict(nstep=3), "nstep_return"),
    ("ppo_offpolicy", dict(random_collect_size=10), "random_collect_size"),
    ("ppo_offpolicy", dict(learn=dict(dual_clip=0.5)), "dual_clip"),
    ("ppg", dict(action_space="continuous"), "action_space"),
    ("ppg", dict(learn=dict(aux_freq=0)), "aux_freq"),
    ("acer", dict(action_space="continuous"), "action_space"),
    ("acer", dict(learn=dict(target_theta=2.0)), "target_theta"),
    ("acer", dict(learn=dict(trust_region_value=-1.0)), "trust_region_value"),
]


@pytest.mark.parametrize(("name", "cfg", "pattern"), BAD)
def test_settings_without_sense_are_refused(name: str, cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        policy_of(name, **cfg)


def test_fewer_samples_than_a_batch() -> None:
    policy = policy_of("a2c")
    few = Rows({name: column[:8] for name, column in samples_of(policy).columns.items()})
    with pytest.raises(ConfigError, match="batch_size = 16"):
        policy.learn_mode.forward(few)


@pytest.mark.parametrize("name", ["ppo", "ppo_offpolicy", "ppg"])
def test_the_clip_of_values_begins_where_the_critic_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However far the scale of returns moves between collecting and learning."""
    policy: Any = policy_of(name, learn=dict(value_norm=True, value_clip=True))
    samples = samples_of(policy)
    samples.columns["return"] *= 50.0
    gaps: list[float] = []

    def note(batch: Any) -> Any:
        with torch.no_grad():
            value = policy._model(batch["obs"], mode="compute_critic")["value"]
        gaps.append(float((value - batch["value"]).abs().max()))
        raise StopIteration

    step = "_value_step" if name == "ppg" else "_step"
    monkeypatch.setattr(policy, step, note)
    with pytest.raises((StopIteration, RuntimeError)):
        policy.learn_mode.forward(samples)
    assert policy._return_scale.std > 2
    assert gaps == [pytest.approx(0.0, abs=1e-5)]
