"""NGU: the family's schedules, what its network sees, and rewards and discounts by index."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from ding.config import compile_config
from ding.entry import serial_pipeline
from ding.envs import BaseEnvManager, BaseEnvTimestep
from ding.policy import create_policy
from ding.policy.acting import epsilon_greedy
from ding.policy.ngu import family_betas, family_discounts, family_epsilons, learned_reward
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed
from ding.worker import SampleCollector, SequenceReplayBuffer
from policy.fakes import losses_of
from policy.q_fakes import shake_target
from policy.test_r2d2 import BURN_IN, UNROLL, sequences, shortened
from policy.test_time_limits import LENGTH, FiveSteps

N = 3


def ngu(seed: int = 0, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    model = dict(
        obs_shape=cfg.pop("obs", 3),
        action_shape=cfg.pop("actions", 4),
        encoder_hidden_size_list=cfg.pop("encoder", [8]),
        **cfg.pop("model", {}),
    )
    cfg = dict(burnin_step=BURN_IN, learn_unroll_len=UNROLL, nstep=2, collect=dict(env_num=N)) | cfg
    return create_policy(dict(type="ngu", model=model, **cfg))


def family_sequences(n: int = 6, **columns: np.ndarray) -> dict[str, Any]:
    """Those of R2D2 with what came before each step, and an index for each sequence."""
    batch = sequences(n)
    rng = np.random.default_rng(1)
    t = BURN_IN + UNROLL
    reward = rng.standard_normal((n, t)).astype(np.float32)
    first_action, first_reward = rng.integers(0, 4, n), reward[:, -1].copy()
    first_action[batch["begins"][:, 0]], first_reward[batch["begins"][:, 0]] = -1, 0
    length = batch["mask"].sum(axis=1, dtype=np.int64)
    last = np.minimum(np.arange(t), length[:, None] - 1)  # padding repeats the last step
    row = np.arange(n)[:, None]
    reward = reward[row, last]
    before = {
        "prev_action": np.c_[first_action, batch["action"][:, :-1]][row, last],
        "prev_reward_extrinsic": np.c_[first_reward, reward[:, :-1]][row, last],
    }
    beta = np.repeat(np.arange(n) % N, t).reshape(n, t)
    return {**batch, **before, "reward_extrinsic": reward, "beta": beta, **columns}


# --- the family ----------------------------------------------------------------------------------


def test_schedules_by_hand() -> None:
    assert family_epsilons(3, 0.4, 8.0) == pytest.approx([0.4, 0.4**5, 0.4**9])
    # 1 - gamma: 0.01, 0.1 in the middle of the factors, 1.
    assert family_discounts(3, 0.0, 0.99) == pytest.approx([0.99, 0.9, 0.0], abs=1e-6)
    sigmoid = [1 / (1 + np.exp(-10 * x)) for x in (-1 / 3, 1 / 3)]  # of (2i - 3) / 3, i = 1, 2
    wanted = [0, 0.3 * sigmoid[0], 0.3 * sigmoid[1], 0.3 / (1 + np.exp(-10)), 0.3]
    assert family_betas(5, 0.3) == pytest.approx(wanted, rel=1e-3)
    assert family_betas(2, 0.3) == pytest.approx([0, 0.3])
    alone = family_betas(1, 0.3), family_discounts(1, 0.9, 0.99), family_epsilons(1, 0.4, 8.0)
    assert np.concatenate(alone) == pytest.approx([0, 0.99, 0.4])
    assert all(np.all(np.diff(family_betas(n, 0.3)) > 0) for n in (3, 8, 32))


def test_the_reward_to_learn_from() -> None:
    batch = {
        "reward": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        "beta": torch.tensor([[0, 0], [1, 1]]),
    }
    betas = torch.tensor([0.0, 0.5])
    assert learned_reward(batch, betas) is batch["reward"]
    batch["intrinsic_reward"] = torch.full((2, 2), 8.0)
    assert learned_reward(batch, betas).tolist() == [[1, 2], [7, 8]]


# --- learning ------------------------------------------------------------------------------------


def q_of(model: Any, inputs: dict[str, np.ndarray], state: Any) -> np.ndarray:
    """(T, A): one sequence, one step at a time."""
    found, states = [], [state]
    with torch.no_grad():
        for t in range(len(inputs["obs"])):
            step = {key: torch.from_numpy(value[t : t + 1]) for key, value in inputs.items()}
            output = model({**step, "prev_state": states}, inference=True)
            states = output["next_state"]
            found.append(output["logit"][0].numpy())
    return np.array(found)


def inputs_of(batch: dict[str, Any], i: int, length: int) -> dict[str, np.ndarray]:
    """What the network sees at the steps of a sequence, and after the last of them."""

    def joined(key: str, after: str) -> np.ndarray:
        return np.concatenate([batch[key][i, :length], batch[after][i, length - 1 : length]])

    return {
        "obs": joined("obs", "next_obs"),
        "prev_action": joined("prev_action", "action"),
        "prev_reward_extrinsic": joined("prev_reward_extrinsic", "reward_extrinsic"),
        "beta": joined("beta", "beta"),
    }


@pytest.mark.parametrize("is_curious", [True, False])
def test_loss_one_step_at_a_time(is_curious: bool) -> None:
    policy = ngu(learn=dict(value_rescale=False), beta_max=0.8)
    shake_target(policy)
    batch = family_sequences()
    reward = batch["reward"]
    if is_curious:
        batch["intrinsic_reward"] = np.random.default_rng(2).random((6, 6)).astype(np.float32)
        reward = (
            reward
            + np.array([0, 0.8 / (1 + np.exp(-10)), 0.8])[batch["beta"]]
            * (batch["intrinsic_reward"])
        )
    errors = []
    for i in range(6):
        length = int(batch["mask"][i].sum())
        inputs = inputs_of(batch, i, length)
        state = {k: torch.from_numpy(v[i]) for k, v in batch["prev_state"].items()}
        q, target_q = (q_of(m, inputs, state) for m in (policy._model, policy._target.module))
        value = target_q[np.arange(length + 1), q.argmax(axis=1)]
        for t in range(0 if batch["begins"][i, 0] else BURN_IN, length):
            total, factor, at = 0.0, 1.0, t
            while at < min(t + 2, length):
                total += factor * reward[i, at]
                factor *= batch["discount"][i, at]
                at += 1
            errors.append(total + factor * value[at] - q[t, batch["action"][i, t]])
    output = policy.learn_mode.forward(Rows(batch))
    assert float(output["total_loss"]) == pytest.approx(np.square(errors).mean(), rel=1e-4)
    assert output["priority"].shape == (6,)
    assert set(policy.learn_mode.monitor_vars()) <= set(output)


def test_learns_one_batch_and_leaves_the_target_alone() -> None:
    policy = ngu(learn=dict(learning_rate=0.01))
    batch = family_sequences(16)
    batch["discount"][:] = 0
    before = [p.detach().clone() for p in policy._target.module.parameters()]
    own = [p.detach().clone() for p in policy._model.parameters()]
    losses = losses_of(policy, batch, 60)
    assert losses[-1] < 0.3 * losses[0]
    pairs = zip(before, policy._target.module.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert all(not torch.equal(a, b) for a, b in zip(own, policy._model.parameters(), strict=True))


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    # The compiler takes its time with every step of a sequence.
    kwargs: dict[str, Any] = dict(burnin_step=1, learn_unroll_len=1, nstep=1)
    batch = shortened(family_sequences(4), 2)
    batch["weight"] = np.linspace(0, 1, 4, dtype=np.float32)
    batch["intrinsic_reward"] = np.ones((4, 2), np.float32)
    eager = losses_of(ngu(**kwargs), batch, 4)
    compiled = losses_of(ngu(learn=dict(compile=True), **kwargs), batch, 4)
    assert compiled == pytest.approx(eager, abs=1e-4)


def test_images() -> None:
    batch = shortened(family_sequences(2), 2)
    frames = np.random.default_rng(0).integers(0, 255, (2, 2, 2, 4, 64, 64), dtype=np.uint8)
    batch["obs"], batch["next_obs"] = frames
    policy = ngu(obs=[4, 64, 64], encoder=[4, 4, 4, 8], burnin_step=1, learn_unroll_len=1)
    assert np.isfinite(losses_of(policy, batch, 2)).all()


# --- acting --------------------------------------------------------------------------------------


def test_acting_sees_the_past_and_the_index() -> None:
    policy = ngu()
    rng = np.random.default_rng(0)
    track = {
        "obs": rng.standard_normal((5, 3, 3)).astype(np.float32),  # (time, env, obs)
        "prev_action": np.concatenate([np.full((1, 3), -1), rng.integers(0, 4, (4, 3))]),
        "prev_reward_extrinsic": 3 * rng.standard_normal((5, 3, 1)).astype(np.float32),
    }

    def wanted(env: int, beta: int) -> np.ndarray:
        inputs = {key: value[:, env] for key, value in track.items()}
        inputs["prev_reward_extrinsic"] = inputs["prev_reward_extrinsic"][:, 0]
        zero = {k: torch.zeros(1, 1, 8) for k in ("h", "c")}
        return q_of(policy._model, {**inputs, "beta": np.full(5, beta)}, zero).argmax(axis=1)

    collected = [wanted(i, i) for i in range(3)]
    evaluated = [wanted(i, 0) for i in range(3)]
    for t in range(5):
        ids = np.array([2, 0, 1]) if t % 2 else np.arange(3)
        obs = ByEnv(ids, {key: value[t, ids] for key, value in track.items()})
        output = stacked_of(policy.collect_mode.forward(obs))[1]
        assert output["action"].tolist() == [collected[i][t] for i in ids]
        assert output["beta"].tolist() == ids.tolist()
        output = stacked_of(policy.eval_mode.forward(obs))[1]
        assert output["action"].tolist() == [evaluated[i][t] for i in ids]
    assert any((a != b).any() for a, b in zip(collected, evaluated, strict=True))


def test_every_env_explores_at_its_own_rate() -> None:
    q = np.tile(np.eye(4)[2], (3, 1))
    rng = np.random.default_rng(0)
    rates = np.array([0.0, 1.0, 0.4])
    actions = np.array([epsilon_greedy(q, rates, rng) for _ in range(2000)])
    explored = (actions != 2).mean(axis=0) * 4 / 3
    assert explored == pytest.approx(rates, abs=0.05)

    policy = ngu(other=dict(eps=dict(base=0.5, alpha=2.0)))
    eps = policy.command_mode.get_setting_collect({"envstep": 10**6})["eps"]
    assert eps == pytest.approx({0: 0.5, 1: 0.5**2, 2: 0.5**3})
    ids = np.array([5, 3, 4])  # a second round of envs follows the same policies
    obs = {
        "obs": np.zeros((3, 3), np.float32),
        "prev_action": np.full(3, -1),
        "prev_reward_extrinsic": np.zeros((3, 1), np.float32),
    }
    taken = []
    for _ in range(40):
        policy.collect_mode.reset()
        output = stacked_of(policy.collect_mode.forward(ByEnv(ids, obs), eps={0: 0, 1: 1, 2: 0}))
        assert output[1]["beta"].tolist() == [2, 0, 1]
        taken.append(output[1]["action"])
    assert [len(set(column)) for column in np.array(taken).T.tolist()] == [1, 1, 4]


class WithPast(FiveSteps):
    """Shows the last action, and ten times the last reward, too."""

    _observation_space = gym.spaces.Dict(
        obs=FiveSteps._observation_space,
        prev_action=gym.spaces.Discrete(2),
        prev_reward_extrinsic=gym.spaces.Box(-np.inf, np.inf, (1,), dtype=np.float32),
    )

    def _obs(self) -> Any:
        action, reward = self.before
        previous = {"prev_action": np.int64(action), "prev_reward_extrinsic": np.float32([reward])}
        return {"obs": super()._obs(), **previous}

    def reset(self) -> Any:
        self.before = -1, 0.0
        return super().reset()

    def step(self, action: Any) -> BaseEnvTimestep:
        self.before = int(action), 10.0
        return super().step(action)


def collector_of(policy: Any, terminates: bool, n: int = N) -> SampleCollector:
    env = BaseEnvManager([partial(WithPast, terminates, False)] * n, {})
    return SampleCollector(env=env, policy=policy.collect_mode)


def test_collected_steps() -> None:
    policy = ngu(obs=LENGTH + 1, actions=2, discount_factor=0.99, discount_factor_min=0.9)
    buffer = SequenceReplayBuffer(dict(unroll_len=4, burn_in=1))
    with collector_of(policy, True) as collector:
        buffer.push(
            collector.collect(n_sample=150, policy_kwargs={"eps": dict.fromkeys((0, 1, 2), 0.5)})
        )
    columns = buffer.sample(100).columns  # type: ignore[union-attr]
    gammas = np.array([0.99, 1 - np.sqrt(0.01 * 0.1), 0.9])[columns["beta"]]
    step = columns["obs"].argmax(axis=-1)
    discount = policy._batch(buffer.sample(100))["discount"]
    assert discount.shape == columns["beta"].shape
    discount = policy._with_discount(columns)["discount"]
    assert discount == pytest.approx(np.where(step < LENGTH - 1, gammas, 0))
    assert (columns["beta"] == columns["beta"][:, :1]).all()
    assert {0, 1, 2} == set(columns["beta"][:, 0].tolist())
    assert ((columns["prev_action"] == -1) == (step == 0)).all()
    assert (columns["prev_reward_extrinsic"] == np.where(step == 0, 0, 10)).all()
    assert (columns["reward_extrinsic"] == 10).all()
    assert (columns["reward"] == 1).all()
    follows = columns["mask"][:, 1:] > 0
    assert (columns["prev_action"][:, 1:] == columns["action"][:, :-1])[follows].all()
    assert (columns["next_obs"].argmax(axis=-1) == step + 1).all()


def test_running_episodes_are_remembered_when_resuming() -> None:
    policy, other = (ngu(obs=LENGTH + 1, actions=2) for _ in range(2))
    with collector_of(policy, True) as first, collector_of(other, True) as second:
        first.collect(n_sample=3 * N)  # in the middle of an episode
        second.load_state_dict(deepcopy(first.state_dict()))
        other.rng.bit_generator.state = policy.rng.bit_generator.state
        kwargs = {"eps": {0: 0.1, 1: 0.5, 2: 0.9}}
        one, two = (
            collector.collect(n_sample=40, policy_kwargs=kwargs).columns  # type: ignore[attr-defined]
            for collector in (first, second)
        )
    for key in ("obs", "action", "prev_action", "prev_reward_extrinsic", "beta", "done"):
        assert np.array_equal(one[key], two[key]), key
    assert np.array_equal(one["prev_state"]["h"], two["prev_state"]["h"])
    assert not one["begins"][0] and one["prev_action"][0] >= 0


@pytest.mark.parametrize("terminates", [True, False])
def test_each_policy_learns_the_value_of_its_own_discount(terminates: bool) -> None:
    """Truncated episodes are worth 1 / (1 - gamma); all of them share one network."""
    learn = dict(learning_rate=0.01, target_update_freq=5, value_rescale=False)
    gru = dict(lstm_type="gru")
    gammas: dict[str, Any] = dict(discount_factor=0.8, discount_factor_min=0.2)
    policy = ngu(
        obs=LENGTH + 1, actions=2, nstep=3, burnin_step=1, learn=learn, model=gru, **gammas
    )
    buffer = SequenceReplayBuffer(dict(unroll_len=4, burn_in=1))
    with collector_of(policy, terminates) as collector:
        buffer.push(collector.collect(n_sample=450, policy_kwargs={"eps": 0.5}))
    for _ in range(250):
        policy.learn_mode.forward(buffer.sample(32))
    obs = np.eye(LENGTH + 1, dtype=np.float32)[:LENGTH]
    inputs = {
        "obs": obs if terminates else obs[[0] * LENGTH],
        "prev_action": np.array([-1, 0, 1, 0, 1]),
        "prev_reward_extrinsic": np.array([0, 10, 10, 10, 10], np.float32),
    }
    for beta, gamma in ((0, 0.8), (1, 0.6), (2, 0.2)):
        value = q_of(policy._model, {**inputs, "beta": np.full(LENGTH, beta)}, None).max(axis=1)
        left = [sum(gamma**i for i in range(LENGTH - k)) for k in range(LENGTH)]
        wanted = left if terminates else [1 / (1 - gamma)] * LENGTH
        assert value == pytest.approx(wanted, abs=0.5)


# --- as a whole ----------------------------------------------------------------------------------


def configs(create: dict[str, Any] | None = None, **policy: Any) -> list[dict[str, Any]]:
    env = dict(
        env_id="CartPole-v1",
        env_wrapper=policy.pop("env_wrapper", ["obs_plus_prev_action_reward"]),
        collector_env_num=5,
        evaluator_env_num=2,
        n_evaluator_episode=2,
        stop_value=1e6,
    )
    usual = dict(burnin_step=2, learn_unroll_len=4, model=dict(encoder_hidden_size_list=[8]))
    main = dict(exp_name=policy.pop("exp_name", "x"), env=env, policy={**usual, **policy})
    return [main, dict(policy=dict(type="ngu"), **(create or {}))]


def compiled(*args: Any, **kwargs: Any) -> Any:
    main, create = configs(*args, **kwargs)
    return compile_config(main, auto=True, create_cfg=create, save_cfg=False)


def test_the_family_is_as_large_as_the_envs_are_many() -> None:
    cfg = compiled(priority=True)
    assert cfg.policy.collect.env_num == 5
    assert cfg.policy.other.replay_buffer.type == "advanced_sequence"
    cfg.policy.model.update(obs_shape=4, action_shape=2)
    eps = create_policy(cfg.policy).command_mode.get_setting_collect()["eps"]
    assert list(eps) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_trains(manager: str, tmp_path: Path) -> None:
    config = configs(
        dict(env_manager=dict(type=manager)),
        exp_name=str(tmp_path / "run"),
        priority=True,
        priority_IS_weight=True,
        collect=dict(n_sample=40),
        learn=dict(batch_size=8),
    )
    policy = serial_pipeline(config, seed=0, max_env_step=200)
    assert policy._model.rnn.input_size == 8 + 2 + 1 + 5  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(collect=dict(env_num=3)), "follows 'env.collector_env_num'"),
        (dict(model=dict(collector_env_num=3)), "collector_env_num = 3.*leave it out"),
        (dict(other=dict(eps=dict(start=1.0))), "unknown config key 'policy.other.eps.start'"),
        (dict(other=dict(eps=dict(base=2.0))), "eps.base = 2.0"),
        (dict(discount_factor=1.0), "discount_factor = 1.0"),
        (dict(discount_factor=0.9), "discount_factor_min = 0.99"),
        (dict(beta_max=-1.0), "beta_max = -1.0"),
        (dict(random_collect_size=10), "random_collect_size = 10"),
    ],
)
def test_bad_settings(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        compiled(**cfg)


def test_an_env_that_does_not_show_the_past(tmp_path: Path) -> None:
    config = configs(env_wrapper=[], exp_name=str(tmp_path / "run"))
    with pytest.raises(ConfigError, match="obs_plus_prev_action_reward"):
        serial_pipeline(config, seed=0, max_env_step=10)
    assert not (tmp_path / "run").exists()
