from __future__ import annotations

import pytest
import torch
from torch import nn

from ding.torch_utils import TargetNetwork
from ding.utils.errors import ConfigError
from torch_utils.regression import net


def test_target_network() -> None:
    source = net()
    target = TargetNetwork(source, theta=0.5)
    before = target.module[0].weight.clone()
    with torch.no_grad():
        source[0].weight.add_(1.0)
    target.update()
    assert torch.allclose(target.module[0].weight, before + 0.5)
    assert not any(p.requires_grad for p in target.module.parameters())
    assign = TargetNetwork(source, freq=2)
    with torch.no_grad():
        source[0].weight.add_(1.0)
    assign.update()
    assert not torch.equal(assign.module[0].weight, source[0].weight)
    state = assign.state_dict()
    assign.update()
    assert torch.equal(assign.module[0].weight, source[0].weight)
    other = TargetNetwork(source, freq=2)
    other.load_state_dict(state)
    other.update()  # its second, as the state says
    assert torch.equal(other.module[0].weight, source[0].weight)
    for wrong in ({}, {"freq": 1, "theta": 0.1}):
        with pytest.raises(ConfigError, match="exactly one"):
            TargetNetwork(source, **wrong)  # type: ignore[arg-type]


def test_target_copies_buffers() -> None:
    source = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    target = TargetNetwork(source, theta=0.1)
    source(torch.randn(8, 2))
    target.update()
    assert torch.equal(target.module[1].running_mean, source[1].running_mean)
