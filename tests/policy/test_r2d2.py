"""R2D2: sequences, states and returns against computations one step at a time."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from ding.config import compile_config
from ding.envs import BaseEnvManager
from ding.policy import create_policy
from ding.policy.r2d2 import R2D2Policy
from ding.rl_utils.td import sequence_returns
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed
from ding.worker import AdvancedSequenceReplayBuffer, SampleCollector, SequenceReplayBuffer
from dizoo.classic_control.cartpole.envs import NoVelocityEnv
from policy.fakes import losses_of
from policy.q_fakes import shake_target
from policy.test_time_limits import GAMMA, LENGTH, TERMINATED, envs, states

BURN_IN, UNROLL = 2, 4


def r2d2(seed: int = 0, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    model = dict(
        obs_shape=cfg.pop("obs", 3),
        action_shape=cfg.pop("actions", 4),
        encoder_hidden_size_list=[8],
        **cfg.pop("model", {}),
    )
    cfg = dict(burnin_step=BURN_IN, learn_unroll_len=UNROLL, nstep=2) | cfg
    return create_policy(dict(type="r2d2", model=model, **cfg))


def sequences(n: int = 6, seed: int = 0, keys: tuple[str, ...] = ("h", "c")) -> dict[str, Any]:
    """Of lengths 1 to T, as the buffer gives them; every second one begins an episode."""
    rng = np.random.default_rng(seed)
    t = BURN_IN + UNROLL
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    track = normal(n, t + 1, 3)
    length = 1 + (np.arange(n) + 3) % t
    at = np.minimum(np.arange(t), length[:, None] - 1)  # padding repeats the last step
    row = np.arange(n)[:, None]
    ends = (np.arange(t) == length[:, None] - 1) & (length[:, None] < t)
    terminated = ends & (np.arange(n)[:, None] % 3 > 0)
    begins = np.zeros((n, t), bool)
    begins[::2, 0] = True
    state = {key: 0.5 * normal(n, 1, 1, 8) for key in keys}
    for value in state.values():
        value[::2] = 0
    return {
        "obs": track[row, at],
        "next_obs": track[row, at + 1],
        "action": rng.integers(0, 4, (n, t))[row, at],
        "reward": normal(n, t)[row, at],
        "done": ends[row, at],
        "discount": (~terminated * np.float32(0.9))[row, at],
        "begins": begins[row, at],
        "mask": (np.arange(t) < length[:, None]).astype(np.float32),
        "burn_in": np.full(n, BURN_IN),
        "prev_state": state,
    }


def shortened(batch: dict[str, Any], n: int) -> dict[str, Any]:
    whole = ("prev_state", "burn_in")
    return {key: value if key in whole else value[:, :n] for key, value in batch.items()}


# --- returns and loss ----------------------------------------------------------------------------


@pytest.mark.parametrize("nstep", [1, 2, 9])
def test_sequence_returns_by_a_plain_loop(nstep: int) -> None:
    rng = np.random.default_rng(0)
    t, b = 6, 5
    reward, value = rng.normal(size=(t, b)), rng.normal(size=(t + 1, b))
    length = np.array([6, 1, 3, 6, 4])
    discount = np.full((t, b), 0.9)
    discount[0, 1] = discount[5, 3] = 0  # these ended, the others were cut off
    mask = np.arange(t)[:, None] < length
    tensors = [torch.from_numpy(x) for x in (reward, discount, value, mask)]
    found = sequence_returns(*tensors, nstep).numpy()
    for i in range(b):
        for start in range(length[i]):
            total, factor, at = 0.0, 1.0, start
            while at < min(start + nstep, length[i]):
                total += factor * reward[at, i]
                factor *= discount[at, i]
                at += 1
            assert found[start, i] == pytest.approx(total + factor * value[at, i])


def q_of(model: Any, obs: np.ndarray, state: Any) -> np.ndarray:
    """(T, A): one sequence, one step at a time."""
    found, states = [], [state]
    with torch.no_grad():
        for one in torch.from_numpy(obs):
            output = model({"obs": one[None], "prev_state": states}, inference=True)
            states = output["next_state"]
            found.append(output["logit"][0].numpy())
    return np.array(found)


def h(x: float, eps: float) -> float:
    return float(np.sign(x) * (np.sqrt(abs(x) + 1) - 1) + eps * x)


def h_inverse(y: float, eps: float) -> float:
    low, high = -1e4, 1e4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if h(middle, eps) < y else (low, middle)
    return low


@pytest.mark.parametrize("rescale", [True, False])
@pytest.mark.parametrize("lstm_type", ["normal", "gru"])
@pytest.mark.parametrize("masked", [True, False])
def test_loss_one_step_at_a_time(rescale: bool, lstm_type: str, masked: bool) -> None:
    # The paper's epsilon of value rescaling is 1e-3.
    check_loss(0.001, dict(value_rescale=rescale), lstm_type, masked)


def test_epsilon_of_value_rescaling_can_be_set() -> None:
    check_loss(0.01, dict(value_rescale=True, rescale_eps=0.01), "normal", masked=False)


def check_loss(eps: float, learn: dict[str, Any], lstm_type: str, masked: bool) -> None:
    rescale = learn["value_rescale"]
    policy = r2d2(learn=learn, model=dict(lstm_type=lstm_type))
    shake_target(policy)
    batch = sequences(keys=("h",) if lstm_type == "gru" else ("h", "c"))
    n, errors = 6, []
    allowed = np.ones((n, BURN_IN + UNROLL + 1, 4), np.int8)
    if masked:
        allowed[:] = np.random.default_rng(1).integers(0, 2, allowed.shape)
        allowed[..., 3] |= ~allowed.any(axis=-1)  # one at least
    squares = 0.0
    for i in range(n):
        length = int(batch["mask"][i].sum())
        last = batch["next_obs"][i, length - 1]
        obs = np.concatenate([batch["obs"][i, :length], last[None]])
        state = {k: torch.from_numpy(v[i]) for k, v in batch["prev_state"].items()}
        q, target_q = (q_of(m, obs, state) for m in (policy._model, policy._target.module))
        best = np.where(allowed[i, : length + 1], q, -np.inf).argmax(axis=1)
        value = target_q[np.arange(length + 1), best]
        value = np.array([h_inverse(v, eps) for v in value]) if rescale else value
        own = []
        for t in range(length):
            if t < BURN_IN and not batch["begins"][i, 0]:
                continue
            total, factor, at = 0.0, 1.0, t
            while at < min(t + 2, length):
                total += factor * batch["reward"][i, at]
                factor *= batch["discount"][i, at]
                at += 1
            target = total + factor * value[at]
            own.append((h(target, eps) if rescale else target) - q[t, batch["action"][i, t]])
        errors.append(np.abs(own))
        squares += np.square(own).sum()
    wanted = squares / sum(map(len, errors))
    if masked:
        length = batch["mask"].sum(axis=1).astype(int)[:, None]
        at = np.minimum(np.arange(BURN_IN + UNROLL), length - 1)
        for key, times in (("obs", at), ("next_obs", at + 1)):
            mask = allowed[np.arange(n)[:, None], times]
            batch[key] = {"obs": batch[key], "action_mask": mask}
    output = policy.learn_mode.forward(Rows(batch))
    assert float(output["total_loss"]) == pytest.approx(wanted, rel=1e-3)
    priority = [0.9 * e.max() + 0.1 * e.mean() if len(e) else 0.0 for e in errors]
    assert output["priority"].numpy() == pytest.approx(priority, rel=1e-2, abs=1e-4)
    assert set(policy.learn_mode.monitor_vars()) <= set(output)


def test_importance_weights_are_per_sequence() -> None:
    batch = sequences()
    batch["begins"][:] = False
    for key in ("reward", "obs"):
        batch[key] = batch[key].copy()
    weight = np.zeros(6, np.float32)
    weight[1] = 2.0
    changed = deepcopy(batch)
    changed["reward"][[0, 2, 3, 4, 5]] += 7  # sequences that weigh nothing
    losses = [
        float(r2d2().learn_mode.forward(Rows({**b, "weight": weight}))["total_loss"])
        for b in (batch, changed)
    ]
    assert losses[0] == losses[1]
    assert losses[0] > 0


def test_no_gradient_flows_into_the_burn_in() -> None:
    policy = r2d2()
    batch = policy._batch(Rows(sequences()))
    batch["begins"][:] = False
    obs = batch["obs"].requires_grad_()
    batch["next_obs"].requires_grad_()
    loss, _ = policy._loss(batch)
    (grad,) = torch.autograd.grad(loss, obs)
    assert (grad[:, :BURN_IN] == 0).all()
    whole = batch["mask"].sum(dim=1) == BURN_IN + UNROLL
    assert grad[whole][:, BURN_IN:].abs().sum() > 0


def test_learns_one_batch_and_leaves_the_target_alone() -> None:
    policy = r2d2(learn=dict(learning_rate=0.01))
    batch = sequences(16)
    batch["discount"][:] = 0
    before = [p.detach().clone() for p in policy._target.module.parameters()]
    losses = losses_of(policy, batch, 99)
    assert all(
        torch.equal(a, b) for a, b in zip(before, policy._target.module.parameters(), strict=True)
    )
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    learn: dict[str, Any] = dict(grad_clip_type="clip_norm", grad_clip_value=0.1)
    # The compiler takes its time with every step of a sequence.
    kwargs: dict[str, Any] = dict(burnin_step=1, learn_unroll_len=1, nstep=1)
    batch = shortened(sequences(4), 2)
    batch["weight"] = np.linspace(0, 1, 4, dtype=np.float32)
    eager = losses_of(r2d2(learn=learn, **kwargs), batch, 4)
    compiled = losses_of(r2d2(learn=dict(compile=True, **learn), **kwargs), batch, 4)
    assert compiled == pytest.approx(eager, abs=1e-4)


# --- acting --------------------------------------------------------------------------------------


def test_acting_remembers_each_env() -> None:
    policy = r2d2()
    track = np.random.default_rng(0).normal(size=(5, 3, 3)).astype(np.float32)  # (time, env, obs)
    zero = {k: torch.zeros(1, 1, 8) for k in ("h", "c")}
    wanted = [q_of(policy._model, track[:, i], zero).argmax(axis=1) for i in range(3)]
    for t in range(5):
        ids = np.array([2, 0, 1]) if t % 2 else np.arange(3)
        output = stacked_of(policy.collect_mode.forward(ByEnv(ids, track[t, ids])))[1]
        assert output["action"].tolist() == [wanted[i][t] for i in ids]
        assert output["origin"]["begins"].all() == (t == 0)
        assert output["origin"]["prev_state"]["h"].shape == (3, 1, 1, 8)
        same = stacked_of(policy.eval_mode.forward(ByEnv(ids, track[t, ids])))[1]
        assert same["action"].tolist() == output["action"].tolist()
    policy.collect_mode.reset([1])
    output = stacked_of(policy.collect_mode.forward(ByEnv(np.arange(3), track[0])))[1]
    assert output["origin"]["begins"].tolist() == [False, True, False]
    assert (output["origin"]["prev_state"]["h"][1] == 0).all()
    assert output["action"][1] == wanted[1][0]
    policy.eval_mode.reset()
    assert policy._collector._states
    assert not policy._evaluator._states


def test_collected_steps_hold_the_state_they_were_acted_from() -> None:
    policy = r2d2(obs=LENGTH + 1, actions=2)
    buffer = SequenceReplayBuffer(dict(unroll_len=4, burn_in=1))
    with SampleCollector(env=envs(True), policy=policy.collect_mode) as collector:
        for _ in range(10):
            buffer.push(collector.collect(n_sample=12, policy_kwargs={"eps": 0.5}))
    columns = buffer.sample(100).columns  # type: ignore[union-attr]
    step = columns["obs"].argmax(axis=-1)
    for i in range(100):
        length = int(columns["mask"][i].sum())
        assert step[i, :length].tolist() == list(range(step[i, 0], step[i, 0] + length))
        assert columns["begins"][i, 0] == (step[i, 0] == 0)
        assert columns["done"][i, length - 1] or length == 5 or step[i, length - 1] < LENGTH - 1
        before = np.eye(LENGTH + 1, dtype=np.float32)[: step[i, 0]]
        if len(before):
            output = policy._model({"obs": torch.from_numpy(before)[:, None], "prev_state": None})
            h = output["next_state"][0]["h"].detach().numpy()
            assert columns["prev_state"]["h"][i] == pytest.approx(h, abs=1e-5)
        else:
            assert (columns["prev_state"]["h"][i] == 0).all()


def test_running_episodes_are_remembered_when_resuming() -> None:
    policy, other = r2d2(obs=2, actions=2), r2d2(obs=2, actions=2)
    make = partial(NoVelocityEnv, {})

    def collector(of: Any) -> SampleCollector:
        env = BaseEnvManager([make] * 2, {})
        env.seed(0)
        return SampleCollector(env=env, policy=of.collect_mode)

    with collector(policy) as first, collector(other) as second:
        first.collect(n_sample=14)
        second.load_state_dict(deepcopy(first.state_dict()))
        other.rng.bit_generator.state = policy.rng.bit_generator.state
        one, two = (c.collect(n_sample=40).columns for c in (first, second))  # type: ignore[attr-defined]
    for key in ("obs", "action", "begins", "episode_id", "episode_step"):
        assert np.array_equal(one[key], two[key]), key
    assert not one["begins"][0]
    assert np.array_equal(one["prev_state"]["h"], two["prev_state"]["h"])


# --- as a whole ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("terminates", "nstep"), [(True, 1), (True, 3), (False, 3)])
def test_learns_the_known_value(terminates: bool, nstep: int) -> None:
    learn = dict(learning_rate=0.01, target_update_freq=10, value_rescale=nstep == 3)
    policy = r2d2(
        obs=LENGTH + 1, actions=2, nstep=nstep, discount_factor=GAMMA, learn=learn, burnin_step=1
    )
    buffer = SequenceReplayBuffer(dict(unroll_len=4, burn_in=1))
    with SampleCollector(env=envs(terminates), policy=policy.collect_mode) as collector:
        buffer.push(collector.collect(n_sample=400, policy_kwargs={"eps": 0.5}))
    for _ in range(250):
        policy.learn_mode.forward(buffer.sample(32))
    obs = states()[:LENGTH] if terminates else states()[:1].expand(LENGTH, -1)
    with torch.no_grad():
        q = policy._model({"obs": obs[:, None], "prev_state": None})["logit"][:, 0].amax(dim=1)
    value = [h_inverse(v, 0.001) for v in q.tolist()] if nstep == 3 else q.tolist()
    assert value == pytest.approx(TERMINATED if terminates else [10.0] * 5, abs=0.9)


def config(create: dict[str, Any] | None = None, **policy: Any) -> Any:
    main = dict(
        exp_name="x",
        env=dict(stop_value=1, n_evaluator_episode=1, type="cartpole_no_velocity"),
        policy=dict(burnin_step=3, learn_unroll_len=7, **policy),
    )
    parts = dict(policy=dict(type="r2d2"), **(create or {}))
    return compile_config(main, auto=True, create_cfg=parts, save_cfg=False)


def test_the_buffer_is_one_of_sequences() -> None:
    buffer = config().policy.other.replay_buffer
    assert (buffer.type, buffer.burn_in, buffer.unroll_len) == ("sequence", 3, 7)
    buffer = config(priority=True).policy.other.replay_buffer
    assert (buffer.type, buffer.burn_in, buffer.unroll_len) == ("advanced_sequence", 3, 7)
    theta = config(learn=dict(target_update_theta=0.1)).policy.learn.target_theta
    assert theta == 0.1


def test_priorities_are_those_of_sequences() -> None:
    policy = r2d2(obs=LENGTH + 1, actions=2, priority=True, priority_IS_weight=True)
    buffer = AdvancedSequenceReplayBuffer(
        dict(replay_buffer_size=100, unroll_len=4, burn_in=2, alpha=1.0)
    )
    with SampleCollector(env=envs(True), policy=policy.collect_mode) as collector:
        buffer.push(collector.collect(n_sample=60, policy_kwargs={"eps": 0.5}))
    rows: Any = buffer.sample(16)
    output = policy.learn_mode.forward(rows)
    assert output["priority"].shape == (16,)
    ids = rows.columns["replay_unique_id"]
    buffer.update({"replay_unique_id": np.arange(60), "priority": np.full(60, 1e-9)})
    buffer.update({"replay_unique_id": ids[:1], "priority": [1.0]})
    again: Any = buffer.sample(16)
    assert (again.columns["replay_unique_id"] == ids[0]).all()
    assert again.columns["obs"].shape == (16, 6, LENGTH + 1)
    assert (again.columns["obs"][:, 0] == rows.columns["obs"][0, 0]).all()
    restored = AdvancedSequenceReplayBuffer(
        dict(replay_buffer_size=100, unroll_len=4, burn_in=2, alpha=1.0)
    )
    restored.load_state_dict(buffer.state_dict())
    more: Any = restored.sample(4)
    assert (more.columns["mask"] == again.columns["mask"][:4]).all()


@pytest.mark.parametrize(
    ("cfg", "pattern"),
    [
        (dict(collect=dict(unroll_len=10)), "unroll_len = 10"),
        (dict(create=dict(replay_buffer=dict(type="naive"))), "'naive' does not draw"),
        (dict(other=dict(replay_buffer=dict(burn_in=5))), "follows 'policy.burnin_step'"),
        (dict(random_collect_size=100), "random_collect_size = 100"),
        (dict(create=dict(replay_buffer=dict(type="sequence")), priority=True), "priority"),
    ],
)
def test_bad_settings(cfg: dict[str, Any], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        config(**cfg)
    with pytest.raises(ConfigError, match="learn_unroll_len = 0"):
        r2d2(learn_unroll_len=0)
    with pytest.raises(ConfigError, match="burnin_step = -1"):
        r2d2(burnin_step=-1)


def test_nested_observations() -> None:
    batch = sequences()
    wide = {"obs": {"a": batch["obs"], "b": batch["obs"][..., :1]}}
    wide["next_obs"] = {"a": batch["next_obs"], "b": batch["next_obs"][..., :1]}
    wide["prev_state"] = {key: np.zeros((6, 1, 1, 16), np.float32) for key in ("h", "c")}
    policy = r2d2(obs={"a": 3, "b": 1})
    output = policy.learn_mode.forward(Rows({**batch, **wide}))
    assert np.isfinite(float(output["total_loss"]))
    assert isinstance(policy, R2D2Policy)
