"""What the algorithms with action values share."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ding.model.actor_critic import QAC
from ding.policy.critics import critic_values

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
