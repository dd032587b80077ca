"""R2D2 with a transformer: whose memory is whose, and that it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ding.policy import create_policy
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.seed import set_pkg_seed
from policy.fakes import losses_of
from policy.q_fakes import shake_target
from policy.test_r2d2 import BURN_IN, UNROLL, sequences


def gtrxl(seed: int = 0, obs: Any = 3, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    model = dict(
        obs_shape=obs,
        action_shape=4,
        encoder_hidden_size_list=[8],
        hidden_size=8,
        att_head_dim=4,
        att_layer_num=cfg.pop("layers", 2),
        memory_len=3,
    )
    cfg = dict(burnin_step=BURN_IN, learn_unroll_len=UNROLL, nstep=2) | cfg
    return create_policy(dict(type="r2d2_gtrxl", model=model, **cfg))


def batch_without_states(n: int = 6) -> dict[str, Any]:
    return {key: value for key, value in sequences(n).items() if key != "prev_state"}


def test_acting_remembers_each_env() -> None:
    policy = gtrxl()
    track = np.random.default_rng(0).normal(size=(6, 3, 3)).astype(np.float32)  # (time, env, obs)
    wanted = []
    with torch.no_grad():
        for i in range(3):
            policy._model.reset_memory()
            steps = torch.from_numpy(track[:, i : i + 1])
            wanted.append([policy._model(one[None])["logit"][0, 0].argmax() for one in steps])
    policy._model.reset_memory()
    for t in range(6):
        ids = np.array([2, 0, 1]) if t % 2 else np.arange(3)
        if t == 3:
            policy.learn_mode.forward(Rows(batch_without_states()))  # has a memory of its own
            policy.learn_mode.load_state_dict(gtrxl().learn_mode.state_dict())
        for mode in (policy.collect_mode, policy.eval_mode):
            output = stacked_of(mode.forward(ByEnv(ids, track[t, ids])))[1]
            assert output["action"].tolist() == [wanted[i][t] for i in ids]
    policy.collect_mode.reset([1])
    output = stacked_of(policy.collect_mode.forward(ByEnv(np.arange(3), track[0])))[1]
    assert output["origin"]["begins"].tolist() == [False, True, False]
    assert output["action"][1] == wanted[1][0]
    assert "prev_state" not in output["origin"]


def test_learns_one_batch() -> None:
    policy = gtrxl(learn=dict(learning_rate=0.01))
    batch = batch_without_states(16)
    batch["discount"][:] = 0
    losses = losses_of(policy, batch, 99)
    assert losses[-1] < 0.4 * losses[0]


def test_what_is_after_the_burn_in_sees_it_through_the_memory() -> None:
    policy = gtrxl()
    shake_target(policy)
    batch = policy._batch(Rows(batch_without_states()))
    obs = torch.randn(BURN_IN + UNROLL + 1, 6, 3)
    q = policy._unrolled(policy._model, obs, batch)
    assert q.shape == (BURN_IN + UNROLL + 1, 6, 4)
    assert policy._model.get_memory() is None
    other = obs.clone()
    other[0] += 1
    changed = (policy._unrolled(policy._model, other, batch) - q).abs().amax(dim=(1, 2))
    assert (changed[: BURN_IN + 2] > 0).all()
    later = obs.clone()
    later[-1] += 1
    changed = (policy._unrolled(policy._model, later, batch) - q).abs().amax(dim=(1, 2))
    assert (changed[:-1] == 0).all()
