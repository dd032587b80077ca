"""Every algorithm learns from the rewards of a reward model alone, or is refused with one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from conformance.claims import CLAIMS, home
from conformance.configs import config_of, trained
from ding.reward_model import BaseRewardModel
from ding.utils.batch import Rows, columns_of
from ding.utils.errors import ConfigError
from ding.utils.registry import REWARD_MODEL_REGISTRY

NOT_SERVED = ("acer", "bc", "impala", "pg", "ppo_offpolicy")
"""They work out what they learn from when they collect, or keep or look at no rewards."""


@REWARD_MODEL_REGISTRY.register("conformance_sign")
class Parity(BaseRewardModel):
    """Worth 1 after an even number of parts above 0 in an observation, else 0."""

    def estimate(self, data: Any) -> Any:
        columns = columns_of(data)
        obs = columns["next_obs"]
        leaf = np.asarray(obs.get("obs", obs.get("agent_state")) if isinstance(obs, dict) else obs)
        even = (leaf.reshape(len(leaf), -1) > 0).sum(axis=1) % 2 == 0
        reward = np.zeros_like(columns["reward"], dtype=np.float32)
        reward[even] = 1
        return Rows({**columns, "reward": reward})


def weights(algorithm: str, learned: bool, wrappers: list[str]) -> list[torch.Tensor]:
    config = config_of(home(algorithm))
    config[0]["env"]["env_wrapper"] = [*config[0]["env"]["env_wrapper"], *wrappers]
    if learned:
        config[0]["reward_model"] = dict(type="conformance_sign")
    policy = trained(config, max_env_step=64)
    return [p.detach().clone() for p in policy._model.parameters()]


def same(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("algorithm", CLAIMS)
def test_rewards_of_the_env_are_replaced(algorithm: str) -> None:
    if algorithm in NOT_SERVED:
        why = "(works out its targets|learns no rewards)"
        with pytest.raises(ConfigError, match=f"policy '{algorithm}' {why}"):
            weights(algorithm, True, [])
        return
    learned = weights(algorithm, True, [])
    assert same(learned, weights(algorithm, True, ["clip_reward"]))
    assert not same(learned, weights(algorithm, False, []))
