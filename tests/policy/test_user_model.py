"""Networks of users that give tensors, pairs, or what cannot fit."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
import torch
from torch import nn

from ding.policy import get_policy_cls
from ding.policy.user_model import ActorCriticOfPair, fitted_model
from ding.utils.errors import ConfigError

OBS, ACTIONS = gym.spaces.Box(-1, 1, (4,)), gym.spaces.Discrete(2)


def fitted(model: nn.Module, policy: str) -> Any:
    cfg = {**get_policy_cls({"type": policy}).default_config(), "type": policy}
    return fitted_model(model, cfg, OBS, ACTIONS)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pi, self.v = nn.Linear(4, 2), nn.Linear(4, 1)

    def forward(self, x: torch.Tensor) -> Any:
        return self.pi(x), self.v(x)


def test_a_tensor_is_the_values_of_actions() -> None:
    net, obs = nn.Sequential(nn.Linear(4, 2)), torch.ones(3, 4)
    assert torch.equal(fitted(net, "dqn")(obs)["logit"], net(obs))


def test_a_pair_is_logits_and_values() -> None:
    net, obs = Pair(), torch.ones(3, 4)
    model = fitted(net, "ppo")
    assert isinstance(model, ActorCriticOfPair)
    both = model(obs, mode="compute_actor_critic")
    assert torch.equal(both["logit"], net.pi(obs)) and both["value"].shape == (3,)
    assert set(model(obs)) == {"logit"} and set(model(obs, mode="compute_critic")) == {"value"}


@pytest.mark.parametrize(
    ("net", "policy", "words"),
    [
        (nn.Linear(4, 7), "dqn", r"must be \(2, 2\), since .*Discrete\(2\), but it is \(2, 7\)"),
        (nn.Linear(5, 2), "dqn", r"a call with two of them fails: RuntimeError"),
        (nn.Linear(4, 2), "ppo", r"network Linear must have forward\(obs, mode\)"),
    ],
)
def test_what_cannot_fit_says_what_is_expected(net: nn.Module, policy: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        fitted(net, policy)
