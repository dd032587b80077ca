"""Rows that users bring: obs, action, reward, next_obs and done are enough for every policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from conformance.claims import CLAIMS, home
from conformance.configs import config_of
from conformance.worlds import WorldEnv
from ding.config import compile_config
from ding.envs import BaseEnvManager
from ding.pipeline.spaces import fit_model_to_env
from ding.policy import Policy, create_policy
from ding.utils.batch import Rows, columns_of, stack

N = 64
OF_SEQUENCES = ("r2d2", "r2d2_gtrxl", "ngu", "ppo_recurrent", "qmix", "vdn", "idqn")
"""They learn from states that only acting knows."""


def played(algorithm: str) -> tuple[Policy, list[dict[str, Any]]]:
    """A policy and steps of a random one, as plain dicts."""
    config = config_of(home(algorithm))
    cfg = compile_config(config[0], auto=True, create_cfg=config[1], save_cfg=False)
    manager = BaseEnvManager([lambda: WorldEnv({**cfg.env})], {})
    fit_model_to_env(cfg.policy, manager)
    env = WorldEnv({**cfg.env})
    env.seed(0)
    rows, obs = [], env.reset()
    while len(rows) < N:
        action = env.random_action()
        step = env.step(action)
        rows.append(
            dict(obs=obs, action=action, reward=step.reward, next_obs=step.obs, done=step.done)
        )
        obs = env.reset() if step.done else step.obs
    return create_policy(cfg.policy), rows


@pytest.mark.parametrize("algorithm", [name for name in CLAIMS if name not in OF_SEQUENCES])
def test_rows_as_the_documents_show_them(algorithm: str) -> None:
    policy, rows = played(algorithm)
    before = [p.detach().clone() for p in policy._model.parameters()]
    output = policy.learn_mode.forward(rows)
    losses = [o["total_loss"] for o in ([output] if isinstance(output, dict) else output)[:1]]
    assert all(np.isfinite(float(loss)) for loss in losses)
    after = list(policy._model.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_rows_made_by_stacking_are_the_same_as_dicts() -> None:
    policy, rows = played("dqn")
    other, _ = played("dqn")
    other.learn_mode.load_state_dict(policy.learn_mode.state_dict())
    one = policy.learn_mode.forward(rows)
    two = other.learn_mode.forward(Rows(stack(rows)))
    assert columns_of(rows).keys() == rows[0].keys()
    assert float(one["total_loss"]) == pytest.approx(float(two["total_loss"]), rel=1e-6)
