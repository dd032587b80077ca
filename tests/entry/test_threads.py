"""How many threads torch gets: as many as pay off, and never more than the user allows."""

from __future__ import annotations

import os
from typing import Any

import pytest
from easydict import EasyDict
from torch import nn

from ding.pipeline.run import threads_for


def threads(width: int, batch_size: int, given: int | None = None) -> int:
    policy: Any = EasyDict(_model=nn.Linear(width, width, bias=False))
    return threads_for(policy, EasyDict(learn=dict(batch_size=batch_size, threads=given)))


def test_small_networks_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads(128, 64) == 1
    assert threads(512, 256) == os.cpu_count()


@pytest.mark.parametrize(("allowed", "expected"), [("1", 1), ("3", 3), ("0", None), ("x", None)])
def test_the_environment_limits_them(
    allowed: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", allowed)
    assert threads(512, 256) == (expected or os.cpu_count())
    assert threads(128, 64) == 1


def test_the_config_decides() -> None:
    assert threads(8, 8, given=2) == 2
