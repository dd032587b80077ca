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
from ding.policy import Policy, create_policy, get_policy_cls
from ding.utils.batch import Rows, columns_of, stack
from ding.utils.errors import ConfigError
from ding.utils.seed import set_pkg_seed

N = 64
OF_SEQUENCES = {
    "r2d2": r"lack mask, begins, prev_state: .*'sequence'",
    "r2d3": r"lack mask, begins, prev_state: .*'sequence'",
    "r2d2_gtrxl": r"lack mask, begins: .*'sequence'",
    "ngu": r"lack mask, begins, prev_state, beta, .*, reward_extrinsic: .*'sequence'",
    "ppo_recurrent": r"lack prev_state: .*collector",
}
"""They learn from states that only acting knows: what they say without."""
OF_STEPS = [
    name
    for name in CLAIMS
    if name not in OF_SEQUENCES
    and not getattr(get_policy_cls({"type": name}), "draws_sequences", False)
]


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


@pytest.mark.parametrize("algorithm", OF_STEPS)
def test_rows_as_the_documents_show_them(algorithm: str) -> None:
    policy, rows = played(algorithm)
    before = [p.detach().clone() for p in policy._model.parameters()]
    output = policy.learn_mode.forward(rows)
    losses = [o["total_loss"] for o in ([output] if isinstance(output, dict) else output)[:1]]
    assert all(np.isfinite(float(loss)) for loss in losses)
    after = list(policy._model.parameters())
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def boxed(value: Any, form: str, i: int) -> Any:
    """A number in the other forms that rows have it in."""
    if isinstance(value, dict):
        return {k: boxed(v, form, i) if k == "action_type" else v for k, v in value.items()}
    if np.ndim(value):
        return value
    tensor = torch.as_tensor(np.asarray(value))
    return tensor.reshape(1) if form == "axis" or i % 2 else tensor


@pytest.mark.parametrize("algorithm", OF_STEPS)
def test_numbers_with_an_axis_of_their_own_are_the_same_numbers(algorithm: str) -> None:
    losses = []
    for form in (None, "axis", "mixed"):
        set_pkg_seed(0)
        policy, rows = played(algorithm)
        if form:
            names = ("action", "reward", "done")
            more = [{k: boxed(row[k], form, i) for k in names} for i, row in enumerate(rows)]
            rows = [{**row, **other} for row, other in zip(rows, more, strict=True)]
        output = policy.learn_mode.forward(rows)
        losses.append(float((output if isinstance(output, dict) else output[0])["total_loss"]))
    assert losses[1:] == pytest.approx([losses[0]] * 2, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("algorithm", OF_SEQUENCES)
def test_recurrent_policies_say_what_plain_rows_lack(algorithm: str) -> None:
    policy, rows = played(algorithm)
    with pytest.raises(ConfigError, match=OF_SEQUENCES[algorithm]):
        policy.learn_mode.forward(rows)


def test_rows_made_by_stacking_are_the_same_as_dicts() -> None:
    policy, rows = played("dqn")
    other, _ = played("dqn")
    other.learn_mode.load_state_dict(policy.learn_mode.state_dict())
    one = policy.learn_mode.forward(rows)
    two = other.learn_mode.forward(Rows(stack(rows)))
    assert columns_of(rows).keys() == rows[0].keys()
    assert float(one["total_loss"]) == pytest.approx(float(two["total_loss"]), rel=1e-6)
