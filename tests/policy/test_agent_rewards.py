"""Rewards with an axis of agents: worked out along it, or refused with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.utils.batch import Rows, columns_of
from ding.utils.errors import ConfigError
from policy.gradient_fakes import UNROLL, policy_of, steps_of

SHARED = ("done", "truncated", "end")
ALGORITHMS = ("pg", "a2c", "ppo", "ppo_offpolicy", "impala")


def of_team() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Steps of two agents who live and die together, apart and as one axis."""
    apart = [steps_of(seed=seed) for seed in (0, 1)]
    together = {
        name: np.stack([steps[name] for steps in apart], axis=1)
        for name in apart[0]
        if name not in SHARED
    }
    return apart, {**together, **{k: apart[0][k] for k in SHARED if k in apart[0]}}


@pytest.mark.parametrize("algorithm", ["pg", "a2c", "ppo", "ppo_offpolicy"])
def test_every_agent_has_the_returns_of_its_own_rewards(algorithm: str) -> None:
    policy = policy_of(algorithm)
    apart, together = of_team()
    samples = columns_of(policy._get_train_sample(Rows(together)))
    for agent, steps in enumerate(apart):
        own = columns_of(policy._get_train_sample(Rows(steps)))
        for name in {"advantage", "return"} & set(samples):
            assert samples[name][:, agent] == pytest.approx(own[name], abs=1e-5)


def test_targets_of_impala_are_those_of_every_agent() -> None:
    policy = policy_of("impala")
    apart, together = of_team()

    def losses(steps: dict[str, Any]) -> Any:
        return policy_of("impala").learn_mode.forward(policy._get_train_sample(Rows(steps)))

    both, own = losses(together), [losses(steps) for steps in apart]
    for name in ("policy_loss", "value_loss", "priority"):
        mean = sum(np.asarray(o[name]) for o in own) / 2
        assert np.asarray(both[name]) == pytest.approx(mean, rel=1e-4, abs=1e-6)
    assert both["priority"].shape == (32 // UNROLL,)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_reward_is_for_all_agents(algorithm: str) -> None:
    _, together = of_team()
    for reward in (together["reward"], together["reward"][:, 0]):
        output = policy_of(algorithm).learn_mode.forward(
            policy_of(algorithm)._get_train_sample(Rows({**together, "reward": reward}))
        )
        for out in [output] if isinstance(output, dict) else output:
            assert np.isfinite(float(out["total_loss"]))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_vector_of_rewards_for_one_value_is_refused(algorithm: str) -> None:
    policy, steps = policy_of(algorithm), steps_of()
    steps["reward"] = np.stack([steps["reward"]] * 2, axis=1)
    with pytest.raises(ConfigError, match=r"rewards of the shape \(.*2\) do not fit .* their sum"):
        policy.learn_mode.forward(policy._get_train_sample(Rows(steps)))
