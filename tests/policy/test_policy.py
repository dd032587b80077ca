"""What all algorithms share: modes, attributes, state, learning from a batch at all."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import nn

from ding.policy import (
    DQNPolicy,
    Policy,
    PolicyFactory,
    create_policy,
    get_policy_cls,
    get_random_policy,
    register_policy,
)
from ding.policy.needs import Needs
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import CheckpointError, ConfigError, DingError
from ding.utils.seed import set_pkg_seed
from policy.fakes import KINDS, batch_of, losses_of, policy_of

FIELDS = {
    "learn_mode": (
        *("forward", "reset", "info", "monitor_vars", "get_attribute", "set_attribute"),
        *("state_dict", "load_state_dict"),
    ),
    "collect_mode": (
        *("forward", "process_transition", "get_train_sample", "reset", "get_attribute"),
        *("set_attribute", "state_dict", "load_state_dict"),
    ),
    "eval_mode": (
        *("forward", "reset", "get_attribute", "set_attribute", "state_dict", "load_state_dict"),
    ),
    "command_mode": ("get_setting_learn", "get_setting_collect", "get_setting_eval"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_modes_are_namedtuples_with_the_documented_fields(kind: str) -> None:
    policy = policy_of(kind)
    for mode, fields in FIELDS.items():
        assert getattr(policy, mode)._fields == fields
        assert isinstance(getattr(policy, mode), tuple)
    assert isinstance(policy.learn_mode.info(), str)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("dqn", "total_loss"),
        ("ppo", "total_loss"),
        ("ppo_continuous", "total_loss"),
        ("sac", "critic_loss"),
        ("discrete_sac", "critic_loss"),
    ],
)
def test_one_batch_is_overfitted(kind: str, key: str) -> None:
    rates = {"learning_rate": 0.01} if "sac" not in kind else {"learning_rate_q": 0.01}
    policy = policy_of(kind, learn={**rates, **({"adv_norm": False} if "ppo" in kind else {})})
    batch = batch_of(kind)
    batch["discount"][:] = 0  # targets that stand still
    losses = losses_of(policy, batch, 150, key)
    assert losses[-1] < losses[0] - 0.2 * abs(losses[0])
    if kind in ("dqn", "sac", "discrete_sac"):
        assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_name_what_is_monitored(kind: str) -> None:
    policy = policy_of(kind)
    output = policy.learn_mode.forward(Rows(batch_of(kind)))
    output = output if isinstance(output, dict) else output[0]
    assert set(policy.learn_mode.monitor_vars()) <= set(output)
    assert not any(v.requires_grad for v in output.values() if isinstance(v, torch.Tensor))


@pytest.mark.parametrize("kind", KINDS)
def test_plain_list_of_dicts_trains_the_same(kind: str) -> None:
    losses = []
    for as_list in (False, True):
        policy = policy_of(kind)
        rows: Any = Rows(batch_of(kind))
        output = policy.learn_mode.forward(list(rows) if as_list else rows)
        output = output if isinstance(output, dict) else output[0]
        losses.append(float(output["total_loss"]))
    assert losses[0] == losses[1]


@pytest.mark.parametrize("kind", KINDS)
def test_learn_state_continues_exactly(kind: str) -> None:
    batch = batch_of(kind)
    policy = policy_of(kind)
    losses_of(policy, batch, 7)
    state, rng = policy.learn_mode.state_dict(), policy.rng.bit_generator.state
    state = torch.utils._pytree.tree_map(
        lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, state
    )
    torch.manual_seed(5)
    wanted = losses_of(policy, batch, 5)
    other = policy_of(kind, seed=9)
    other.learn_mode.load_state_dict(state)
    other.rng.bit_generator.state = rng
    torch.manual_seed(5)
    assert losses_of(other, batch, 5) == wanted
    # Acting goes by the weights that were loaded, though it reads them by itself.
    obs = ByEnv(np.arange(4), batch["obs"][:4])
    actions = [stacked_of(p.eval_mode.forward(obs))[1]["action"] for p in (policy, other)]
    assert np.array_equal(actions[0], actions[1])


@pytest.mark.parametrize("kind", KINDS)
def test_acting_follows_learning(kind: str) -> None:
    """The NumPy version of the network must see every update of the torch one."""
    policy = policy_of(kind)
    losses_of(policy, batch_of(kind), 20)
    obs = batch_of(kind)["obs"]
    output = stacked_of(policy.eval_mode.forward(ByEnv(np.arange(16), obs)))[1]["action"]
    mode = {} if kind == "dqn" else {"mode": "compute_actor"}
    with torch.no_grad():
        logit = policy._model(torch.from_numpy(obs), **mode)["logit"]
    if kind in ("sac", "ppo_continuous"):
        mu = torch.tanh(logit["mu"]) if kind == "sac" else logit["mu"]
        assert np.allclose(output, mu.numpy(), atol=1e-5)
    else:
        assert np.array_equal(output, logit.argmax(dim=1).numpy())


@pytest.mark.parametrize("kind", KINDS)
def test_collecting_and_evaluating_take_plain_dicts(kind: str) -> None:
    policy = policy_of(kind)
    obs = {5: np.zeros(3, dtype=np.float32), 2: np.ones(3, dtype=np.float32)}
    for output in (policy.collect_mode.forward(obs), policy.eval_mode.forward(obs)):
        assert list(output) == [5, 2]
        assert "action" in output[5]


def test_attributes() -> None:
    policy = policy_of("dqn", collect=dict(n_sample=12), nstep=3, priority=True)
    mode = policy.learn_mode
    assert mode.get_attribute("batch_size") == 16
    assert mode.get_attribute("n_sample") == 12
    assert mode.get_attribute("n_episode") is None
    assert mode.get_attribute("unroll_len") == 1
    assert mode.get_attribute("nstep") == 3
    assert mode.get_attribute("priority") is True
    assert mode.get_attribute("on_policy") is False
    assert mode.get_attribute("cuda") is False
    assert mode.get_attribute("device") == torch.device("cpu")
    assert mode.get_attribute("cfg").nstep == 3
    assert mode.get_attribute("traj_len_inf") is False
    mode.set_attribute("own", 5)
    assert mode.get_attribute("own") == 5
    with pytest.raises(NotImplementedError, match="'nope'"):
        mode.get_attribute("nope")


def test_base_class_says_what_is_missing() -> None:
    with pytest.raises(RuntimeError, match="subclasses"):
        Policy.default_config()
    assert DQNPolicy.default_config().cfg_type == "DQNPolicyDict"


class OwnModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logit": self.layer(x.float())}


def test_own_model_and_enable_field() -> None:
    set_pkg_seed(0)
    model = OwnModel()
    policy = create_policy(dict(type="dqn_command"), model=model)
    assert policy._model is model
    losses = losses_of(policy, batch_of("dqn"), 30)
    assert losses[-1] < losses[0]
    only = create_policy(dict(type="dqn"), model=OwnModel(), enable_field=["eval"])
    assert "action" in only.eval_mode.forward({0: np.zeros(3, dtype=np.float32)})[0]
    with pytest.raises(ValueError, match="'lern'"):
        create_policy(dict(type="dqn"), model=OwnModel(), enable_field=["lern"])
    with pytest.raises(ConfigError, match=r"model = 3: .*nn\.Module"):
        create_policy(dict(type="dqn"), model=3)


def test_policies_by_name() -> None:
    assert get_policy_cls(dict(type="dqn")) is DQNPolicy

    class Mine(DQNPolicy):
        pass

    register_policy("mine_for_a_test", Mine)
    assert get_policy_cls(dict(type="mine_for_a_test")) is Mine
    with pytest.raises(DingError, match="'dqn'"):
        get_policy_cls(dict(type="dqnn"))


def test_checkpoint_of_another_model_is_refused() -> None:
    small, large = policy_of("dqn"), policy_of("dqn", model=dict(encoder_hidden_size_list=[32]))
    with pytest.raises(CheckpointError, match="does not fit the model"):
        small.learn_mode.load_state_dict(large.learn_mode.state_dict())
    with pytest.raises(CheckpointError, match="no 'model'"):
        small.eval_mode.load_state_dict({"x": 1})


@pytest.mark.parametrize(
    ("space", "check"),
    [
        (gym.spaces.Discrete(3, start=2), lambda a: a.min() >= 2 and a.max() <= 4),
        (gym.spaces.Box(-2, 3, (2,)), lambda a: a.shape == (50, 2) and a.max() > 2.0),
        (gym.spaces.MultiDiscrete([2, 5]), lambda a: a.shape == (50, 2) and a[:, 1].max() > 1),
        (gym.spaces.Box(-np.inf, np.inf, (1,)), lambda a: a.shape == (50, 1) and a.std() > 0.1),
    ],
)
def test_random_policy(space: Any, check: Any) -> None:
    mode = policy_of("dqn").collect_mode
    set_pkg_seed(1)
    random = get_random_policy(mode, space)
    data = ByEnv(np.arange(50), np.zeros((50, 3)))
    first = random.forward(data)
    assert check(stacked_of(first)[1]["action"])
    assert random.process_transition == mode.process_transition
    assert list(random.forward({3: 0, 1: 0})) == [3, 1]
    set_pkg_seed(1)
    again = stacked_of(get_random_policy(mode, space).forward(data))[1]["action"]
    assert np.array_equal(again, stacked_of(first)[1]["action"])


def test_random_policy_needs_one_source_of_actions() -> None:
    mode = policy_of("dqn").collect_mode
    with pytest.raises(ValueError, match="exactly one"):
        PolicyFactory.get_random_policy(mode)
    own = PolicyFactory.get_random_policy(mode, forward_fn=lambda data: {i: i for i in data})
    assert own.forward({4: None}) == {4: 4}


def test_settings_must_make_sense() -> None:
    for cfg, pattern in (
        (dict(nstep=0), "nstep"),
        (dict(discount_factor=float("nan")), "discount_factor"),
        (dict(learn=dict(learning_rate=float("nan"))), "learning_rate"),
    ):
        with pytest.raises(ConfigError, match=pattern):
            policy_of("dqn", **cfg)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["dqn"])
def test_compiled_updates_are_the_eager_ones(kind: str) -> None:
    clip: dict[str, Any] = dict(grad_clip_type="clip_norm", grad_clip_value=0.1)
    batch = batch_of(kind)
    eager = losses_of(policy_of(kind, learn=clip), batch, 6)
    compiled = losses_of(policy_of(kind, learn=dict(compile=True, **clip)), batch, 6)
    assert compiled == pytest.approx(eager, abs=1e-4)


def test_needs_of_replay_and_of_rollouts() -> None:
    replay = policy_of("dqn", collect=dict(n_sample=12), nstep=3).collect_mode
    # Replay sums the rewards when it draws: no sample waits, but its neighbours must be known.
    assert Needs.of(replay) == Needs(n_sample=12, takes_all_envs=True, links_steps=True)
    assert not Needs.of(policy_of("dqn").collect_mode).links_steps
    rollout = Needs.of(policy_of("ppo").collect_mode)
    assert rollout.on_policy and rollout.takes_all_envs and not rollout.links_steps


def test_needs_of_a_mode_that_names_some() -> None:
    mode = policy_of("dqn").collect_mode

    def attribute(name: str) -> Any:
        if name != "nstep":
            raise NotImplementedError(name)
        return 3

    assert Needs.of(mode._replace(get_attribute=attribute)) == Needs(nstep=3)
