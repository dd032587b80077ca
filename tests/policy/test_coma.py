"""COMA: the counterfactual baseline and the returns of its critic, by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ding.model import create_model
from ding.policy import COMAPolicy
from ding.utils.batch import Rows, columns_of
from ding.utils.errors import ConfigError


class Table(nn.Module):
    """Action a is worth (a + 1) times what the agent sees, and what the other one does."""

    modes = ("compute_actor", "compute_critic")

    def __init__(self) -> None:
        super().__init__()
        self.actor = nn.Parameter(torch.zeros(2))
        self.critic = nn.Parameter(torch.ones(1))

    def forward(self, x: Any, mode: str) -> dict[str, Any]:
        if mode == "compute_actor":
            return {"logit": 0 * x["agent_state"] + self.actor, "action_mask": x["action_mask"]}
        other = x["action"].flip(-1).unsqueeze(-1)
        q = x["obs"]["agent_state"] * torch.tensor([1.0, 2.0]) + other
        return {"q_value": self.critic * q}


def policy_of() -> COMAPolicy:
    rates = dict(learning_rate=1e-9, critic_learning_rate=1e-9, critic_epoch_per_collect=1)
    learn = dict(batch_size=2, td_lambda=0.5, **rates)
    return COMAPolicy(dict(discount_factor=0.5, learn=learn), model=Table())


def steps(truncated: bool = False, mask: Any = ((1, 1), (1, 1))) -> Rows:
    state = np.array([[1, 2], [3, 4], [5, 6]], np.float32)[..., None]
    masks = np.array([mask, mask, [[1, 0], [1, 0]]], np.float32)
    return Rows(
        dict(
            obs={"agent_state": state[:2], "action_mask": masks[:2]},
            next_obs={"agent_state": state[1:], "action_mask": masks[1:]},
            action=np.array([[0, 1], [1, 0]]),
            logit=np.zeros((2, 2, 2), np.float32),
            reward=np.ones(2, np.float32),
            done=np.array([False, True]),
            truncated=np.array([False, truncated]),
            end=np.array([False, True]),
        )
    )


@pytest.mark.parametrize(
    ("truncated", "returns"),
    [
        # Taken are worth 2, 4 and 6, 5; errors 2, -0.5 and -5, -4.
        (False, [[2.75, 2.5], [1, 1]]),
        # What is allowed after the limit is worth 5 and 6.
        (True, [[2.75 + 0.25 * 2.5, 2.5 + 0.25 * 3], [3.5, 4]]),
    ],
)
def test_returns_of_td_lambda(truncated: bool, returns: Any) -> None:
    policy = policy_of()
    samples = policy.collect_mode.get_train_sample(steps(truncated))
    assert columns_of(samples)["return"] == pytest.approx(np.array(returns))
    critic, _ = policy.learn_mode.forward(samples)
    errors = np.array(returns) - [[2, 4], [6, 5]]
    assert float(critic["value_loss"]) == pytest.approx(np.square(errors).mean())


def test_the_baseline_is_what_other_actions_would_have_been_worth() -> None:
    """Advantages -0.5 and 1, then 1.5 and -2, of actions that are as likely as the other one."""
    policy = policy_of()
    _, output = policy.learn_mode.forward(policy.collect_mode.get_train_sample(steps()))
    assert float(output["policy_loss"]) == pytest.approx(math.log(2) * (-0.5 + 1 + 1.5 - 2) / 4)
    assert float(output["entropy"]) == pytest.approx(math.log(2))
    loss, _ = policy._policy_loss(policy._batch(steps()))
    (gradient,) = torch.autograd.grad(loss, policy._model.actor)
    assert gradient.tolist() == pytest.approx([(0.5 + 1 + 1.5 + 2) / 8, -5 / 8])


def test_without_a_choice_there_is_no_advantage() -> None:
    policy = policy_of()
    rows = steps(mask=((1, 0), (0, 1)))
    rows.columns["action"] = np.array([[0, 1], [0, 1]])
    _, output = policy.learn_mode.forward(policy.collect_mode.get_train_sample(rows))
    assert float(output["policy_loss"]) == float(output["entropy"]) == 0


def test_the_critic_sees_what_others_do_but_not_the_own_action() -> None:
    torch.manual_seed(0)
    sizes = dict(agent_num=2, obs_shape=dict(agent_state=2, global_state=3), action_shape=3)
    model = create_model({"type": "coma", **sizes})

    def q(first: int, second: int, alive: Any = (1, 1)) -> Any:
        obs = {"agent_state": torch.ones(1, 2, 2), "global_state": torch.ones(1, 3)}
        obs["alive"] = torch.tensor([alive])
        x = {"obs": obs, "action": torch.tensor([[first, second]])}
        return model(x, "compute_critic")["q_value"][0].detach().numpy()

    base, other = q(0, 1), q(0, 2)
    assert not np.array_equal(base[0], other[0])
    assert np.array_equal(base[1], other[1])
    assert np.array_equal(q(0, 1, (1, 0)), q(0, 2, (1, 0)))
    assert not np.array_equal(q(1, 1)[0], q(1, 1)[1]), "it knows whose values they are"


def test_what_coma_does_not_take() -> None:
    with pytest.raises(ConfigError, match=r"COMA needs a global state"):
        create_model(dict(type="coma", agent_num=2, obs_shape=2, action_shape=3))
    with pytest.raises(ConfigError, match=r"policy.action_space = 'continuous'"):
        COMAPolicy(dict(action_space="continuous"), model=Table())
