"""Recurrent PPO: sequences, states, advantages and losses against computations step by step."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Independent, Normal

from ding.config import compile_config
from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep
from ding.policy import create_policy
from ding.policy.ppo_recurrent import cut
from ding.utils.batch import ByEnv, Rows, stacked_of, take, tree_map
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed
from ding.worker import SampleCollector
from policy.gradient_fakes import losses_of, moved, weights_of
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, envs, states

UNROLL, N_OBS, N_ACTION = 4, 3, 4


class Noise(BaseEnv):
    """Random observations; episodes of 1 to 11 steps, half of them truncated."""

    def __init__(self, seed: int, action_space: gym.Space, masked: bool = False) -> None:
        super().__init__({})
        self.rng, self.masked = np.random.default_rng(seed), masked
        self._observation_space: Any = gym.spaces.Box(-10, 10, (N_OBS,), dtype=np.float32)
        if masked:
            mask = gym.spaces.Box(0, 1, (N_ACTION,), dtype=np.int8)
            obs = {"obs": self._observation_space, "action_mask": mask}
            self._observation_space = gym.spaces.Dict(obs)
        self._action_space = action_space
        self._reward_space = gym.spaces.Box(-10, 10, (1,), dtype=np.float32)

    def _obs(self) -> Any:
        obs = self.rng.standard_normal(N_OBS).astype(np.float32)
        if not self.masked:
            return obs
        self.mask = (self.rng.random(N_ACTION) < 0.4).astype(np.int8)
        self.mask[self.rng.integers(N_ACTION)] = 1
        return {"obs": obs, "action_mask": self.mask.copy()}

    def reset(self) -> Any:
        self.left = int(self.rng.integers(1, 12))
        return self._obs()

    def step(self, action: Any) -> BaseEnvTimestep:
        assert not self.masked or self.mask[int(action)]
        self.left -= 1
        info = {"truncated": True} if self.left == 0 and self.rng.random() < 0.5 else {}
        return BaseEnvTimestep(self._obs(), float(self.rng.normal()), self.left == 0, info)

    def close(self) -> None:
        pass


def recurrent(seed: int = 0, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    model = {
        **dict(obs_shape=N_OBS, action_shape=N_ACTION, encoder_hidden_size_list=[8]),
        **cfg.pop("model", {}),
    }
    learn = {"batch_size": 6, "epoch_per_collect": 1, **cfg.pop("learn", {})}
    collect = {"n_sample": 60, "gae_lambda": 0.8, **cfg.pop("collect", {})}
    cfg = dict(learn_unroll_len=UNROLL, discount_factor=GAMMA) | cfg
    return create_policy(
        dict(type="ppo_recurrent", model=model, learn=learn, collect=collect, **cfg)
    )


def action_space_of(policy: Any) -> gym.Space:
    shape = policy.cfg.model["action_shape"]
    if policy.cfg.action_space == "continuous":
        return gym.spaces.Box(-9, 9, (shape,), dtype=np.float32)
    return gym.spaces.Discrete(shape) if isinstance(shape, int) else gym.spaces.MultiDiscrete(shape)


def collector_of(policy: Any, **env: Any) -> SampleCollector:
    space = action_space_of(policy)
    manager = BaseEnvManager([partial(Noise, seed, space, **env) for seed in range(3)], {})
    return SampleCollector(env=manager, policy=policy.collect_mode)


def collected(policy: Any, **env: Any) -> dict[str, Any]:
    """The second collect: its first episodes began before it."""
    with collector_of(policy, **env) as collector:
        collector.collect()
        return collector.collect().columns  # type: ignore[attr-defined]


def distribution(logit: Any) -> Any:
    if isinstance(logit, dict):
        return Independent(Normal(logit["mu"], logit["sigma"]), 1)
    return Categorical(logits=logit)


def one_step(policy: Any, obs: Any, state: Any) -> dict[str, Any]:
    inputs = {"obs": torch.from_numpy(obs)[None], "prev_state": [state]}
    with torch.no_grad():
        return policy._model(inputs, mode="compute_actor_critic", inference=True)


def state_at(columns: dict[str, Any], row: int) -> Any:
    return {key: torch.from_numpy(value[row]) for key, value in columns["prev_state"].items()}


def shaken(policy: Any) -> Any:
    """A policy that is no longer the one that collected."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in policy._model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return policy


# --- sequences -----------------------------------------------------------------------------------


def test_sequences_hold_every_step_once_and_cross_no_end() -> None:
    end = np.zeros(16, dtype=bool)
    end[[0, 6, 10, 15]] = True  # pieces of 1, 6, 4 and 5 steps
    row, exists = cut(end, 4)
    wanted = [[0], [1, 2, 3, 4], [5, 6], [7, 8, 9, 10], [11, 12, 13, 14], [15]]
    assert [r[e].tolist() for r, e in zip(row, exists, strict=True)] == wanted
    assert row[2].tolist() == [5, 6, 6, 6]
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 50):
        end = rng.random(50) < 0.2
        end[-1] = True
        row, exists = cut(end, n)
        assert row.shape == exists.shape == (len(row), n)
        assert row[exists].tolist() == list(range(50))
        assert not (end[row] & exists)[:, :-1][exists[:, 1:]].any()


def test_collected_steps_make_sequences_of_one_episode() -> None:
    policy = recurrent(model=dict(obs_shape=LENGTH + 1, action_shape=2))
    with SampleCollector(env=envs(True), policy=policy.collect_mode) as collector:
        for _ in range(3):  # of 18 steps each in 4 envs: not whole episodes
            columns = collector.collect(n_sample=72).columns  # type: ignore[attr-defined]
            sequences = policy._for_loss(columns)
            step = sequences["obs"].argmax(axis=-1)
            mask = sequences["mask"] > 0
            assert mask.sum() == 72
            for steps, exist, state in zip(step, mask, sequences["prev_state"]["h"], strict=True):
                own = steps[exist].tolist()
                assert own == list(range(own[0], own[0] + len(own)))
                assert bool((state == 0).all()) == (own[0] == 0)


# --- states --------------------------------------------------------------------------------------


@pytest.mark.parametrize("lstm_type", ["normal", "pytorch", "gru"])
@pytest.mark.parametrize("action_space", ["discrete", "continuous"])
def test_nothing_has_moved_right_after_collecting(lstm_type: str, action_space: str) -> None:
    policy = recurrent(action_space=action_space, model=dict(lstm_type=lstm_type))
    columns = collected(policy)
    batch = policy._batch(Rows(policy._for_loss(columns)))
    _, metrics = policy._loss(batch)
    assert float(metrics["approx_kl"]) == pytest.approx(0.0, abs=1e-6)
    assert float(metrics["clipfrac"]) == 0
    state: Any = None
    for t in range(60):
        begins = t == 0 or columns["end"][t - 1]
        state = state_at(columns, t) if begins else state
        for key, stored in state_at(columns, t).items():
            assert torch.allclose(stored, state[key], atol=1e-5)
        output = one_step(policy, columns["obs"][t], state)
        state = output["next_state"][0]
        action = torch.from_numpy(columns["action"][t : t + 1])
        log_prob = distribution(output["logit"]).log_prob(action)
        assert columns["log_prob"][t] == pytest.approx(float(log_prob), abs=1e-4)
    assert (columns["prev_state"]["h"][0] != 0).any()  # an episode that went on


def test_acting_remembers_each_env_until_it_is_reset() -> None:
    policy = recurrent()
    track = np.random.default_rng(0).normal(size=(5, 3, N_OBS)).astype(np.float32)
    with torch.no_grad():
        inputs = {"obs": torch.from_numpy(track), "prev_state": None}
        wanted = policy._model(inputs, mode="compute_actor")["logit"].numpy()
    for t in range(5):
        ids = np.array([2, 0, 1]) if t % 2 else np.arange(3)
        _, output = stacked_of(policy.collect_mode.forward(ByEnv(ids, track[t, ids])))
        assert output["logit"] == pytest.approx(wanted[t, ids], abs=1e-5)
        assert output["prev_state"]["h"].shape == (3, 1, 1, 8)
        _, best = stacked_of(policy.eval_mode.forward(ByEnv(ids, track[t, ids])))
        assert best["action"].tolist() == wanted[t, ids].argmax(axis=1).tolist()
    for mode in (policy.collect_mode, policy.eval_mode):
        mode.reset([1])
    _, output = stacked_of(policy.collect_mode.forward(ByEnv(np.arange(3), track[0])))
    assert output["logit"][1] == pytest.approx(wanted[0, 1], abs=1e-5)
    assert output["logit"][0] != pytest.approx(wanted[0, 0], abs=1e-5)
    assert (output["prev_state"]["h"][1] == 0).all()
    assert 1 not in policy._evaluator._states
    drawn = policy.rng.bit_generator.state
    policy.eval_mode.reset()
    policy.eval_mode.forward(ByEnv(np.arange(3), track[0]))
    assert policy.rng.bit_generator.state == drawn  # evaluating changes no later collect
    policy.eval_mode.reset()
    assert policy._collector._states
    assert not policy._evaluator._states


def test_running_episodes_are_remembered_when_resuming() -> None:
    policy, other = recurrent(), recurrent()
    with collector_of(policy) as first, collector_of(other) as second:
        first.collect()
        second.load_state_dict(deepcopy(first.state_dict()))
        other.rng.bit_generator.state = policy.rng.bit_generator.state
        one, two = (c.collect().columns for c in (first, second))  # type: ignore[attr-defined]
    for key in ("obs", "action", "log_prob", "advantage"):
        assert np.array_equal(one[key], two[key]), key
    assert np.array_equal(one["prev_state"]["h"], two["prev_state"]["h"])
    assert (one["prev_state"]["h"][0] != 0).any()


# --- advantages and loss -------------------------------------------------------------------------


@pytest.mark.parametrize("ignore_done", [False, True])
def test_advantages_by_a_plain_loop(ignore_done: bool) -> None:
    policy = recurrent(learn=dict(ignore_done=ignore_done))
    policy._return_scale.update(np.array([0.0, 4.0]))
    scale = policy._return_scale.std
    columns = collected(policy)
    end, done, truncated = (columns[key] for key in ("end", "done", "truncated"))
    assert (done & truncated).any() and (done & ~truncated).any() and (end & ~done).any()
    value, after = np.zeros(60), np.zeros(60)
    state: Any = None
    for t in range(60):
        if t == 0 or end[t - 1]:
            state = state_at(columns, t)
        output = one_step(policy, columns["obs"][t], state)
        state = output["next_state"][0]
        value[t] = scale * float(output["value"])
        after[t] = scale * float(one_step(policy, columns["next_obs"][t], state)["value"])
    later, wanted = 0.0, np.zeros(60)
    for t in reversed(range(60)):
        stops = done[t] and not truncated[t] and not ignore_done
        delta = columns["reward"][t] + (0.0 if stops else GAMMA * after[t]) - value[t]
        later = delta + (0.0 if end[t] else GAMMA * 0.8 * later)
        wanted[t] = later
    assert columns["value"] * scale == pytest.approx(value, abs=1e-4)
    assert columns["advantage"] == pytest.approx(wanted, abs=1e-4)
    assert columns["return"] == pytest.approx(wanted + value, abs=1e-4)


@pytest.mark.parametrize("dual_clip", [None, 1.1])
@pytest.mark.parametrize("value_clip", [False, True])
@pytest.mark.parametrize("adv_norm", [False, True])
def test_loss_by_hand(dual_clip: float | None, value_clip: bool, adv_norm: bool) -> None:
    """Sequence by sequence, one step at a time, without any padding."""
    learn = dict(dual_clip=dual_clip, value_clip=value_clip, adv_norm=adv_norm)
    policy = recurrent(learn=dict(entropy_weight=0.1, value_weight=0.3, **learn))
    columns = collected(policy)
    shaken(policy)
    row, exists = cut(columns["end"], UNROLL)
    log_prob, entropy, value = np.zeros(60), np.zeros(60), np.zeros(60)
    for rows in (r[e] for r, e in zip(row, exists, strict=True)):
        state = state_at(columns, rows[0])
        for t in rows:
            output = one_step(policy, columns["obs"][t], state)
            state = output["next_state"][0]
            pi = distribution(output["logit"])
            log_prob[t] = float(pi.log_prob(torch.tensor(int(columns["action"][t]))))
            entropy[t], value[t] = float(pi.entropy()), float(output["value"])
    adv = columns["advantage"].astype(np.float64)
    if adv_norm:
        adv = (adv - adv.mean()) / adv.std(ddof=1)
    ratio = np.exp(log_prob - columns["log_prob"])
    objective = np.minimum(ratio * adv, np.clip(ratio, 0.8, 1.2) * adv)
    if dual_clip is not None:
        objective = np.where(adv < 0, np.maximum(objective, dual_clip * adv), objective)
    error = (columns["return"] - value) ** 2
    if value_clip:
        moved_by = np.clip(value - columns["value"], -0.2, 0.2)
        error = np.maximum(error, (columns["return"] - columns["value"] - moved_by) ** 2)
    loss, metrics = policy._loss(policy._batch(Rows(policy._for_loss(columns))))
    assert float(metrics["policy_loss"]) == pytest.approx(-objective.mean(), abs=1e-4)
    assert float(metrics["value_loss"]) == pytest.approx(0.5 * error.mean(), abs=1e-4)
    assert float(metrics["entropy"]) == pytest.approx(entropy.mean(), abs=1e-4)
    moved_log = columns["log_prob"] - log_prob
    assert float(metrics["approx_kl"]) == pytest.approx(moved_log.mean(), abs=1e-4)
    assert float(metrics["clipfrac"]) == pytest.approx((np.abs(ratio - 1) > 0.2).mean(), abs=1e-4)
    total = -objective.mean() + 0.3 * 0.5 * error.mean() - 0.1 * entropy.mean()
    assert float(loss.detach()) == pytest.approx(total, abs=1e-4)
    assert 0 < float(metrics["clipfrac"]) < 1


def test_padding_counts_for_nothing() -> None:
    policy = recurrent()
    columns = collected(policy)
    shaken(policy)
    batch = policy._batch(Rows(policy._for_loss(columns)))
    exists = batch["mask"] > 0
    assert not exists.all()
    batch["obs"].requires_grad_()
    loss, _ = policy._loss(batch)
    (grad,) = torch.autograd.grad(loss, batch["obs"])
    assert (grad[~exists] == 0).all()
    assert (grad[exists].abs().sum(dim=-1) > 0).float().mean() > 0.9
    nonsense = {
        name: torch.where(exists.reshape(*exists.shape, *[1] * (c.ndim - 2)), c, 7)
        for name, c in batch.items()
        if name not in ("mask", "prev_state")
    }
    nonsense["action"] = batch["action"]
    other, _ = policy._loss({**batch, **nonsense})
    assert float(other.detach()) == pytest.approx(float(loss.detach()), abs=1e-6)


def test_gradients_flow_back_through_a_sequence() -> None:
    policy = recurrent()
    batch = policy._batch(Rows(policy._for_loss(collected(policy))))
    whole = int((batch["mask"].sum(dim=1) == UNROLL).nonzero()[0])
    batch["mask"][:] = 0
    batch["mask"][whole, -2:] = 1  # two steps: one would be its own mean
    batch["obs"].requires_grad_()
    loss, _ = policy._loss(batch)
    (grad,) = torch.autograd.grad(loss, batch["obs"])
    assert (grad[whole].abs().sum(dim=-1) > 0).all()
    assert (grad[torch.arange(len(grad)) != whole] == 0).all()


# --- time limits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("terminates", [True, False])
def test_returns_of_samples(terminates: bool) -> None:
    """With a critic that always says 10 the truncated returns are 10, the others what is left."""
    policy = recurrent(
        model=dict(obs_shape=LENGTH + 1, action_shape=2),
        learn=dict(value_norm=False),
        collect=dict(gae_lambda=1.0),
    )
    named = policy._model.actor_critic.named_parameters()
    critic = [p for name, p in named if name.startswith("critic_head")]
    with torch.no_grad():
        for parameter in critic:
            parameter.zero_()
        critic[-1].fill_(10.0)
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        columns = collector.collect(n_sample=100).columns  # type: ignore[attr-defined]
    if terminates:
        step = columns["obs"].argmax(axis=1)
        assert columns["return"] == pytest.approx(np.array(TERMINATED)[step], abs=1e-4)
    else:
        assert columns["return"] == pytest.approx(10.0, abs=1e-4)


@pytest.mark.parametrize("terminates", [True, False])
def test_known_value_is_learned(terminates: bool) -> None:
    policy = recurrent(
        model=dict(obs_shape=LENGTH + 1, action_shape=2, lstm_type="gru"),
        learn=dict(batch_size=12, epoch_per_collect=5, learning_rate=0.03),
        collect=dict(n_sample=100, gae_lambda=0.95),
    )
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        for _ in range(15):
            policy.learn_mode.forward(collector.collect())
    obs = states()[:LENGTH] if terminates else states()[:1].expand(LENGTH, -1)
    with torch.no_grad():
        value = policy._model({"obs": obs[:, None], "prev_state": None}, mode="compute_critic")
    found = value["value"][:, 0].numpy() * policy._return_scale.std
    assert found == pytest.approx(TERMINATED if terminates else [10.0] * LENGTH, abs=0.8)


# --- updates -------------------------------------------------------------------------------------


def test_minibatches_are_whole_sequences_and_are_counted() -> None:
    policy = recurrent(learn=dict(epoch_per_collect=3, batch_size=7))
    columns = collected(policy)
    n = len(cut(columns["end"], UNROLL).row)
    assert n > 15
    outputs = policy.learn_mode.forward(Rows(columns))
    assert len(outputs) == 3 * (n // 7)
    assert set(policy.learn_mode.monitor_vars()) <= set(outputs[0])
    batches = list(policy._minibatches(policy._for_loss(columns)))
    assert [len(batch["mask"]) for batch in batches] == [7] * (n // 7)
    assert batches[0]["obs"].shape == (7, UNROLL, N_OBS)


def test_one_batch_is_overfitted() -> None:
    policy = recurrent(recompute_adv=False, learn=dict(batch_size=15, learning_rate=0.01))
    losses = losses_of(policy, Rows(collected(policy)), 60, "value_loss")
    assert losses[-1] < 0.3 * losses[0]


def test_every_parameter_learns() -> None:
    policy = recurrent(learn=dict(entropy_weight=0.01))
    columns = collected(policy)
    before = weights_of(policy)
    losses_of(policy, Rows(columns), 2)
    assert moved(before, weights_of(policy)) == set(before)


def test_plain_list_of_dicts_trains_the_same() -> None:
    columns = collected(recurrent())
    losses = []
    for samples in (Rows(columns), list(Rows(columns))):
        policy = recurrent()
        losses.append(float(policy.learn_mode.forward(samples)[0]["total_loss"]))
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_learn_state_continues_exactly() -> None:
    policy, other = (recurrent(seed, learn=dict(epoch_per_collect=2)) for seed in (0, 9))
    samples = Rows(collected(policy))
    losses_of(policy, samples, 2)
    other.learn_mode.load_state_dict(deepcopy(policy.learn_mode.state_dict()))
    other.rng.bit_generator.state = policy.rng.bit_generator.state
    assert losses_of(other, samples, 4) == losses_of(policy, samples, 4)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lstm_type", ["normal", "gru"])
def test_compiled_updates_are_the_eager_ones(lstm_type: str) -> None:
    # The compiler takes its time with every step of a sequence.
    cfg: dict[str, Any] = dict(learn_unroll_len=2, model=dict(lstm_type=lstm_type))
    samples = Rows(collected(recurrent(**cfg)))
    losses, weights = [], []
    for compiled in (False, True):
        policy = recurrent(learn=dict(compile=compiled, learning_rate=0.01), **cfg)
        losses.append(losses_of(policy, samples, 4))
        weights.append(weights_of(policy))
    assert losses[1] == pytest.approx(losses[0], abs=1e-4, rel=1e-4)
    for name, weight in weights[0].items():
        assert torch.allclose(weights[1][name], weight, atol=2e-3), name


# --- actions and observations --------------------------------------------------------------------


def test_several_discrete_actions() -> None:
    policy = recurrent(model=dict(action_shape=[4, 3]))
    columns = collected(policy)
    assert columns["action"].shape == (60, 2)
    _, metrics = policy._loss(policy._batch(Rows(policy._for_loss(columns))))
    assert float(metrics["approx_kl"]) == pytest.approx(0.0, abs=1e-6)
    assert np.isfinite(losses_of(policy, Rows(columns), 3)).all()
    _, best = stacked_of(policy.eval_mode.forward(ByEnv(np.arange(5), columns["obs"][:5])))
    assert best["action"].shape == (5, 2)


def test_continuous_actions() -> None:
    policy = recurrent(action_space="continuous", model=dict(action_shape=2))
    columns = collected(policy)
    assert columns["action"].shape == (60, 2)
    assert np.isfinite(losses_of(policy, Rows(columns), 3)).all()
    best = policy.eval_mode.forward({5: columns["obs"][0], 2: columns["obs"][1]})
    assert best[5]["action"].shape == (2,)


def test_masked_actions_are_never_taken() -> None:
    """The env fails at one that is."""
    policy = recurrent()
    columns = collected(policy, masked=True)
    _, metrics = policy._loss(policy._batch(Rows(policy._for_loss(columns))))
    assert float(metrics["approx_kl"]) == pytest.approx(0.0, abs=1e-6)
    assert np.isfinite(losses_of(policy, Rows(columns), 3)).all()
    obs = take(columns["obs"], np.arange(30))
    _, best = stacked_of(policy.eval_mode.forward(ByEnv(np.arange(30), obs)))
    assert obs["action_mask"][np.arange(30), best["action"]].all()


@pytest.mark.parametrize("kind", ["image", "nested"])
def test_other_observations(kind: str) -> None:
    shape: Any = {"a": 3, "b": 2} if kind == "nested" else [1, 36, 36]
    sizes = [4, 4, 4, 8] if kind == "image" else [4]
    policy = recurrent(model=dict(obs_shape=shape, encoder_hidden_size_list=sizes))
    rng = np.random.default_rng(0)
    of_shape = lambda s: rng.integers(0, 255, (24, *np.atleast_1d(s)), dtype=np.uint8)  # noqa: E731
    end = np.isin(np.arange(24), (6, 15, 23))
    steps = {
        "obs": tree_map(of_shape, shape) if kind == "nested" else of_shape(shape),
        "next_obs": tree_map(of_shape, shape) if kind == "nested" else of_shape(shape),
        "action": rng.integers(0, N_ACTION, 24),
        "logit": rng.standard_normal((24, N_ACTION)).astype(np.float32),
        "prev_state": {key: np.zeros((24, 1, 1, 8), np.float32) for key in ("h", "c")},
        "reward": rng.standard_normal(24).astype(np.float32),
        "done": end,
        "truncated": np.zeros(24, dtype=bool),
        "end": end,
    }
    samples = policy.collect_mode.get_train_sample(Rows(steps))
    assert np.isfinite(losses_of(policy, samples, 2)).all()


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(action_space="hybrid"), "action_space = 'hybrid'"),
        (dict(learn_unroll_len=1), "learn_unroll_len = 1"),
        (dict(collect=dict(unroll_len=8)), "unroll_len = 8 has no effect"),
        (dict(learn=dict(batch_size=16)), "n_sample = 60: less than the 64 steps"),
        (dict(priority=True), "priority"),
        (dict(nstep=3), "nstep"),
        (dict(random_collect_size=10), "random_collect_size"),
        (dict(model=dict(lstm_type="lstm")), "lstm_type"),
        (dict(model=dict(lstm_typ="gru")), "lstm_typ"),
    ],
)
def test_bad_settings(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        recurrent(**cfg)


def test_fewer_sequences_than_a_batch() -> None:
    policy = recurrent()
    few = take(collected(policy), slice(0, 4))
    with pytest.raises(ConfigError, match=r"batch_size = 6 is more than the \d sequences"):
        policy.learn_mode.forward(Rows(few))


def test_config_is_refused_as_a_whole() -> None:
    main = dict(
        exp_name="x",
        env=dict(stop_value=1, n_evaluator_episode=1, type="cartpole_no_velocity"),
        policy=dict(collect=dict(n_sample=1024, unroll_len=8)),
    )
    with pytest.raises(ConfigError, match=r"set policy\.learn_unroll_len"):
        compile_config(
            main, auto=True, create_cfg=dict(policy=dict(type="ppo_recurrent")), save_cfg=False
        )
