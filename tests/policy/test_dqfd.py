"""DQfD's losses by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ding.policy import DQFDPolicy
from ding.policy.dqfd import margin_loss
from ding.utils.batch import Rows


def test_margin_is_to_the_best_other_action() -> None:
    q = torch.tensor([[1.0, 2.0, 0.5], [3.0, 1.0, 1.0]])
    # 2 + 0.8 - 1; the expert's action leads by 2: no loss.
    assert margin_loss(q, torch.tensor([0, 0]), 0.8).tolist() == pytest.approx([1.8, 0.0])


class Table(nn.Module):
    """Q-values by the number of the state."""

    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Parameter(torch.tensor([[1.0, 2.0], [4.0, 3.0], [0.0, 10.0]]))

    def forward(self, obs: Tensor) -> dict[str, Tensor]:
        return {"logit": self.q[obs[:, 0].long()]}


def batch(source: list[int]) -> Rows:
    """State 0, action 0; next state 1 after one step, 2 after several."""
    n = len(source)
    column = torch.ones(n)
    rows: dict[str, Any] = dict(
        obs=torch.zeros(n, 1),
        action=torch.zeros(n, dtype=torch.long),
        reward=2.0 * column,
        next_obs=2.0 * torch.ones(n, 1),
        discount=0.25 * column,
        reward_1=0.5 * column,
        next_obs_1=torch.ones(n, 1),
        discount_1=0.5 * column,
        source=torch.tensor(source),
    )
    return Rows({name: value.numpy() for name, value in rows.items()})


@pytest.mark.parametrize(("source", "margins"), [([0], 0.0), ([1], 2.0 * 1.8), ([0, 1], 1.8)])
def test_loss_by_hand(source: list[int], margins: float) -> None:
    learn = dict(lambda1=0.5, lambda2=2.0, lambda3=0.0, double_q=False)
    policy = DQFDPolicy(
        dict(cuda=False, learn=learn, priority=False, priority_IS_weight=False), model=Table()
    )
    # One step: 0.5 + 0.5 * 4 - 1 = 1.5; several: 2 + 0.25 * 10 - 1 = 3.5.
    expected = 1.5**2 + 0.5 * 3.5**2 + margins
    loss, metrics = policy._loss(policy._batch(batch(source)))
    assert float(loss.detach()) == pytest.approx(expected)
    bonus = [3.5 + s for s in source]
    assert metrics["priority"].tolist() == pytest.approx(bonus)
