"""What the algorithms with action values share."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ding.model.actor_critic import QAC
from ding.policy.critics import critic_values, first_critic_value

X = {"obs": torch.randn(5, 4), "action": torch.randn(5, 2)}


class ListOnly(nn.Module):
    """A model of somebody who knows of the list alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Any, mode: str) -> dict[str, Any]:
        return {"q_value": self.model(x, mode=mode)["q_value"]}


def test_values_of_one_and_of_two_critics() -> None:
    one, two = QAC(4, 2), QAC(4, 2, twin_critic=True)
    assert critic_values(one, X).shape == (1, 5)
    values = critic_values(two, X)
    assert values.shape == (2, 5)
    assert torch.equal(values, critic_values(ListOnly(two), X))


def test_value_of_the_first_critic_alone() -> None:
    one, two = QAC(4, 2), QAC(4, 2, twin_critic=True)
    for model in (one, two, ListOnly(two)):
        torch.testing.assert_close(first_critic_value(model, X), critic_values(model, X)[0])


def test_the_second_critic_is_not_asked() -> None:
    two = QAC(4, 2, twin_critic=True)
    with torch.no_grad():
        for weight in two.critic_head.weights:
            weight[1] = float("nan")
    action = X["action"].clone().requires_grad_()
    first_critic_value(two, {**X, "action": action}).sum().backward()
    assert action.grad is not None
    assert action.grad.isfinite().all()
