"""BDQ against a plain computation, and the env it is shown on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.policy import create_policy
from ding.policy.bdq import BDQPolicy
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed
from dizoo.toy.lattice.envs import LatticeEnv
from policy.fakes import batch_of, losses_of
from policy.q_fakes import shake_target, values


def bdq(seed: int = 0, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    shape = cfg.pop("action_shape", [3, 3])
    model = dict(
        obs_shape=3,
        action_shape=shape,
        encoder_hidden_size_list=[16],
        layer_num=1,
        **cfg.pop("model", {}),
    )
    return create_policy(dict(type="bdq", model=model, **cfg))


def branched_batch() -> dict[str, Any]:
    action = np.random.default_rng(1).integers(0, 3, (16, 2))
    return {**batch_of("dqn"), "action": action}


@pytest.mark.parametrize("double_q", [True, False])
@pytest.mark.parametrize("setting", [{}, {"branch_targets": True}])
def test_loss_by_hand(double_q: bool, setting: dict[str, Any]) -> None:
    """The branches have the mean of their targets in common, or one each if that is asked for."""
    policy = bdq(learn=dict(double_q=double_q, **setting))
    shake_target(policy)
    batch = branched_batch()
    q = values(policy._model, batch["obs"])  # (B, D, A)
    own = values(policy._model, batch["next_obs"])
    after = values(policy._target.module, batch["next_obs"])
    assert q.shape == (16, 2, 3)
    squares = np.zeros(16)
    for i in range(16):
        best = (own if double_q else after)[i].argmax(axis=-1)
        value = after[i, [0, 1], best]
        target = batch["reward"][i] + batch["discount"][i] * (value if setting else value.mean())
        taken = q[i, [0, 1], batch["action"][i]]
        squares[i] = ((taken - target) ** 2).mean()
    weight = np.linspace(0, 1, 16, dtype=np.float32)
    output = policy.learn_mode.forward(Rows({**batch, "weight": weight}))
    assert float(output["total_loss"]) == pytest.approx((weight * squares).mean(), rel=1e-4)
    assert output["priority"].numpy() == pytest.approx(np.sqrt(squares), rel=1e-3)
    assert set(policy.learn_mode.monitor_vars()) <= set(output)


def test_every_branch_explores_by_itself() -> None:
    policy = bdq()
    q = np.float32([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    policy._q = lambda obs: {"logit": np.tile(q, (len(obs), 1, 1))}
    obs = ByEnv(np.arange(6000), np.zeros((6000, 3), np.float32))
    greedy = stacked_of(policy.eval_mode.forward(obs))[1]["action"]
    assert (greedy == [1, 0]).all()
    action = stacked_of(policy.collect_mode.forward(obs, eps=0.3))[1]["action"]
    best = action == [1, 0]
    assert best.mean(axis=0) == pytest.approx([0.8, 0.8], abs=0.03)
    assert best.all(axis=1).mean() == pytest.approx(0.64, abs=0.03)


def test_learns_one_batch() -> None:
    policy, batch = bdq(learn=dict(learning_rate=0.01)), branched_batch()
    batch["discount"][:] = 0
    losses = losses_of(policy, batch, 200)
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_updates_are_the_eager_ones() -> None:
    clip: dict[str, Any] = dict(grad_clip_type="clip_norm", grad_clip_value=0.1)
    batch = branched_batch()
    eager = losses_of(bdq(learn=clip), batch, 6)
    compiled = losses_of(bdq(learn=dict(compile=True, **clip)), batch, 6)
    assert compiled == pytest.approx(eager, abs=1e-4)


def test_branches_are_those_of_the_action() -> None:
    policy = bdq(action_shape=[5, 5, 5])
    obs = ByEnv(np.arange(2), np.zeros((2, 3), np.float32))
    assert stacked_of(policy.eval_mode.forward(obs))[1]["action"].shape == (2, 3)
    assert {"num_branches", "action_shape"} <= BDQPolicy.model_signature({})
    with pytest.raises(ConfigError, match=r"action_shape = \[3, 4\]"):
        bdq(action_shape=[3, 4])
    with pytest.raises(ConfigError, match="num_branches = 4, but the action is"):
        bdq(action_shape=[3, 3], model=dict(num_branches=4))


def test_best_return_of_the_lattice() -> None:
    env = LatticeEnv({"axes": 4})
    for seed in range(3):
        env.seed(seed, dynamic_seed=False)
        obs, done, total = env.reset(), False, 0.0
        assert obs.shape == (4,)
        assert (np.abs(obs) == 2).all()
        while not done:
            timestep = env.step(2 - 2 * np.sign(obs).astype(np.int64))
            obs, done = timestep.obs, timestep.done
            total += timestep.reward
        assert total == pytest.approx(-2.0)
        assert "truncated" not in timestep.info
    env.reset()
    steps = [env.step(np.full(4, 2)) for _ in range(30)]  # stands still
    assert steps[-1].info["truncated"]
    assert steps[-1].info["eval_episode_return"] == pytest.approx(-120.0)
    env.close()
