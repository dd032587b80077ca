"""Members of a group, in threads and over TCP: means of all, errors instead of waiting."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ding.torch_utils import Adam, AdamW, GradientStep, PopArt, RMSprop
from ding.torch_utils.distributed import (
    Group,
    GroupError,
    cancel_meeting,
    current,
    join_meeting,
    open_meeting,
    own_rows,
    use,
    worked_out_together,
)
from ding.torch_utils.running_statistics import RunningScale
from ding.utils.errors import ConfigError

KINDS = pytest.mark.parametrize("in_threads", [True, False], ids=["threads", "gloo"])


def together(member: Callable[[Group], Any], size: int = 2, in_threads: bool = True) -> list[Any]:
    """What all members return, or the error of each."""
    meeting = open_meeting(size, in_threads=in_threads)

    def run(rank: int) -> Any:
        try:
            group = join_meeting(meeting, rank, size, timeout=20)
            with use(group):
                return member(group)
        except GroupError as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))


@KINDS
@pytest.mark.parametrize("size", [2, 3])
def test_mean_and_broadcast(size: int, in_threads: bool) -> None:
    def member(group: Group) -> Any:
        mean, across = torch.arange(3.0) + group.rank, torch.zeros(4, 2)
        across[:, 0] = group.rank
        scalar, flag = torch.tensor(group.rank + 5), torch.tensor([group.rank == 0])
        group.average_(mean)
        group.average_(across[:, 0])  # not contiguous
        for tensor in (scalar, flag):
            group.broadcast_(tensor)
        return mean.tolist(), across.sum().item(), int(scalar), bool(flag)

    mean = (size - 1) / 2
    wanted = ([mean, 1 + mean, 2 + mean], 4 * mean, 5, True)
    assert together(member, size, in_threads) == [wanted] * size


@KINDS
def test_who_leaves_is_missed_at_once(in_threads: bool) -> None:
    def member(group: Group) -> None:
        group.average_(torch.ones(2))
        if group.rank == 2:
            time.sleep(0.2)
            raise GroupError("own trouble")
        group.average_(torch.ones(2))

    began = time.monotonic()
    first, second, third = (str(e) for e in together(member, 3, in_threads))
    assert "another learner is gone" in first
    assert "another learner is gone" in second
    assert third == "own trouble"
    assert time.monotonic() - began < 10


@KINDS
def test_who_does_not_come_is_not_waited_for_long(in_threads: bool) -> None:
    meeting = open_meeting(2, in_threads=in_threads)
    with pytest.raises(GroupError, match="rank 0 of 2"):
        join_meeting(meeting, 0, 2, timeout=0.5)
    cancel_meeting(meeting)
    with pytest.raises(GroupError, match=meeting):
        join_meeting(meeting, 0, 2, timeout=0.5)


def listening() -> set[str]:
    """Addresses, in hex, that this process listens on."""
    own = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            own.add(str(entry.readlink()))
        except OSError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in own:
                found.add(local)
    return found


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux")
def test_nobody_listens_but_on_loopback() -> None:
    before = listening()
    meeting = open_meeting(2)
    opened = listening() - before
    assert len(opened) == 1
    seen = together(
        lambda group: (group.average_(torch.ones(1)), listening() - before)[1], 2, False
    )
    cancel_meeting(meeting)
    assert max(len(s) for s in seen) >= 2
    loopback = "0100007F"
    assert {address.split(":")[0] for address in opened.union(*seen)} == {loopback}


def test_the_group_is_that_of_the_thread() -> None:
    assert current() is None
    assert together(lambda group: current() is group) == [True, True]
    assert current() is None


# --- what learns in a group ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Adam, dict(grad_clip_type="clip_norm", clip_value=0.1)),
        (Adam, dict(grad_clip_type="clip_momentum_norm", grad_ignore_type="ignore_norm")),
        (AdamW, dict(grad_clip_type="clip_value", clip_value=0.05)),
        (RMSprop, {}),
    ],
)
def test_optimizers_average_before_they_limit(kind: Any, options: dict[str, Any]) -> None:
    if "grad_ignore_type" in options:
        options = {**options, "ignore_value": 100.0}
    x = (
        torch.randn(8, 3, generator=torch.Generator().manual_seed(1))
        * torch.arange(1.0, 9)[:, None]
    )

    def train(rows: slice) -> torch.Tensor:
        layer = nn.Linear(3, 1)
        nn.init.constant_(layer.weight, 0.5)
        nn.init.constant_(layer.bias, 0.1)
        optimizer = kind(layer.parameters(), lr=0.01, **options)
        for _ in range(4):
            optimizer.zero_grad()
            (layer(x[rows]) - 1).square().mean().backward()
            optimizer.step()
        return torch.cat([p.detach().reshape(-1) for p in layer.parameters()])

    whole = train(slice(None))
    first, second = together(lambda group: train(slice(4 * group.rank, 4 * group.rank + 4)))
    assert torch.equal(first, second)
    assert torch.allclose(first, whole, atol=1e-6)
    assert not torch.allclose(train(slice(0, 4)), whole, atol=1e-4)


def test_running_statistics_are_of_all() -> None:
    values = np.random.default_rng(0).normal(50, 3, (4, 10)).astype(np.float32)

    def scale(columns: slice) -> float:
        running = RunningScale()
        for row in values:
            running.update(row[columns])
        return running.std

    wanted = scale(slice(None))
    assert wanted == pytest.approx(values.std(), rel=1e-4)
    own = [slice(0, 5), slice(5, 10)]
    assert together(lambda group: scale(own[group.rank])) == pytest.approx([wanted] * 2, rel=1e-6)


def test_popart_follows_the_targets_of_all() -> None:
    targets = torch.randn(8, generator=torch.Generator().manual_seed(0)) * 5 + 2

    def moved(rows: slice) -> list[float]:
        layer = PopArt(2)
        layer.update_parameters(targets[rows])
        return [*layer.mu.tolist(), *layer.sigma.tolist()]

    wanted = moved(slice(None))
    for found in together(lambda group: moved(slice(4 * group.rank, 4 * group.rank + 4))):
        assert found == pytest.approx(wanted, rel=1e-5)


def test_rows_of_every_batch_are_shared_out() -> None:
    order = np.random.default_rng(0).permutation(26)
    assert own_rows(order, 8)[0] is order
    parts = together(lambda group: own_rows(order, 8))
    assert [each for _, each in parts] == [4, 4]
    for batch in range(3):
        rows = [part[4 * batch : 4 * batch + 4] for part, _ in parts]
        assert np.concatenate(rows).tolist() == order[8 * batch : 8 * batch + 8].tolist()
    assert [len(part) for part, _ in together(lambda group: own_rows(order, 100), 3)] == [8] * 3


def test_values_are_worked_out_together() -> None:
    x = np.arange(7, dtype=np.float32)
    seen = []

    def values_of(rows: slice) -> np.ndarray:
        seen.append(len(x[rows]))
        return x[rows] ** 2

    for values in together(lambda group: worked_out_together(values_of, 7), 3):
        assert values == pytest.approx(x**2)
    assert sum(seen) == 7


def test_compiled_updates_are_refused() -> None:
    layer = nn.Linear(3, 1)
    step = GradientStep(
        layer, Adam(layer.parameters()), lambda x: (layer(x).mean(), {}), compiled=True
    )

    def member(group: Group) -> None:
        with pytest.raises(ConfigError, match=r"policy\.learn\.compile = False"):
            step(torch.ones(2, 3))

    together(member)
