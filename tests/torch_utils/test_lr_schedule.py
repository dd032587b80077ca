from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import nn

from ding.torch_utils import Adam, RMSprop, cos_lr_scheduler, get_lr_ratio
from ding.torch_utils.lr_schedule import LrSchedule, lr_factor
from ding.utils.errors import ConfigError


def test_factors_by_hand() -> None:
    linear = partial(lr_factor, kind="linear", decay=10, end=0.2)
    assert [linear(t) for t in (0, 5, 10, 99)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    cosine = partial(lr_factor, kind="cosine", decay=4, end=0.1)
    eighth = 0.1 + 0.9 * (1 + math.cos(math.pi / 4)) / 2
    assert [cosine(t) for t in (0, 1, 2, 4, 9)] == pytest.approx([1.0, eighth, 0.55, 0.1, 0.1])
    step = partial(lr_factor, kind="step", decay=3, gamma=0.5, end=0.2)
    assert [step(t) for t in (0, 2, 3, 6, 9)] == [1.0, 1.0, 0.5, 0.25, 0.2]


@pytest.mark.parametrize("kind", ["linear", "cosine", "step"])
def test_warmup_rises_and_then_the_rest_begins(kind: str) -> None:
    factor = partial(lr_factor, kind=kind, decay=5, gamma=0.5, warmup=3)
    assert [factor(t) for t in range(4)] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    later = [factor(t) for t in range(3, 40)]
    assert later == [lr_factor(t, kind, decay=5, gamma=0.5) for t in range(37)]
    assert later == sorted(later, reverse=True)


def test_all_groups_of_all_optimizers() -> None:
    layers = [nn.Linear(2, 2) for _ in range(3)]
    adam = Adam(layers[0].parameters(), lr=0.1)
    groups = [{"params": layers[1].parameters()}, {"params": layers[2].parameters(), "lr": 0.2}]
    rmsprop = RMSprop(groups, lr=0.4)  # type: ignore[arg-type]
    schedule = LrSchedule([adam, rmsprop], lambda t: 1 / (1 + t))
    schedule.apply(1, -1)
    assert adam.param_groups[0]["lr"] == 0.05
    assert [group["lr"] for group in rmsprop.param_groups] == [0.2, 0.1]
    # A loaded state brings the rate of its time; the next update has the right one again.
    adam.load_state_dict(adam.state_dict())
    schedule.apply(3, -1)
    assert adam.param_groups[0]["lr"] == 0.025
    schedule.apply(0, -1)
    assert adam.param_groups[0]["lr"] == 0.1


def test_unit() -> None:
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    schedule = LrSchedule([optimizer], lambda t: t, "env_step")
    schedule.apply(train_iter=3, env_step=7)
    assert optimizer.param_groups[0]["lr"] == 7
    with pytest.raises(ConfigError, match=r"unit = 'env_step', but the learner was not told"):
        schedule.apply(train_iter=3, env_step=-1)


def test_cosine_schedule_by_hand() -> None:
    ratios = [get_lr_ratio(epoch, 2, 1.0, 6, 0.2) for epoch in (0, 1, 2, 4, 6, 9)]
    assert ratios == pytest.approx([0.0, 0.5, 1.0, 0.6, 0.2, 0.2])
    optimizer = Adam(nn.Linear(3, 1).parameters(), lr=0.5)
    scheduler = cos_lr_scheduler(optimizer, 0.5, 2, 6, 0.1)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.25)
