from __future__ import annotations

import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from ding.worker import NaiveReplayBuffer, create_buffer, get_buffer_cls
from ding.worker.buffer.naive import draw


def buffer_of(size: int) -> NaiveReplayBuffer:
    return NaiveReplayBuffer(dict(replay_buffer_size=size))


def contents(buffer: NaiveReplayBuffer) -> list[int]:
    """All samples, the oldest first."""
    n = buffer.count()
    picked = [buffer.sample(1, sample_range=slice(i, i + 1)) for i in range(n)]
    return [int(rows[0]["x"]) for rows in picked if rows]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.lists(st.integers(0, 12), max_size=8), st.integers(1, 9))
def test_ring_is_a_deque(size: int, pushes: list[int], larger: int) -> None:
    buffer, reference = buffer_of(size), deque[int](maxlen=size)
    count = 0
    for n in pushes:
        rows = [{"x": count + i} for i in range(n)]
        buffer.push(Rows({"x": np.arange(count, count + n)}) if n % 2 else rows)
        reference.extend(range(count, count + n))
        count += n
    assert buffer.count() == len(reference)
    assert contents(buffer) == list(reference)
    if reference:
        other = buffer_of(size + larger)
        other.load_state_dict(buffer.state_dict())
        assert contents(other) == list(reference)
        other.push({"x": 999})
        assert contents(other) == [*reference, 999]


def test_sampling_is_without_replacement_and_uniform() -> None:
    buffer = buffer_of(10)
    buffer.push([{"x": i} for i in range(10)])
    counts = np.zeros(10)
    for _ in range(600):
        drawn = [int(row["x"]) for row in buffer.sample(4) or []]
        assert len(set(drawn)) == 4
        counts[drawn] += 1
    assert counts / counts.sum() == pytest.approx(0.1, abs=0.02)
    assert sorted(int(row["x"]) for row in buffer.sample(10) or []) == list(range(10))


def test_short_and_empty() -> None:
    buffer = buffer_of(10)
    assert buffer.sample(1) is None
    assert buffer.sample(0) == []
    buffer.push([])
    assert buffer.count() == 0
    buffer.push({"x": 1})
    assert buffer.sample(2) is None
    assert len(buffer.sample(3, replace=True) or []) == 3
    buffer.clear()
    assert buffer.count() == 0
    assert buffer.sample(1, replace=True) is None


def test_what_is_pushed_is_copied() -> None:
    buffer, obs = buffer_of(4), np.zeros(2)
    buffer.push({"obs": obs})
    obs[:] = 7
    drawn = buffer.sample(1)
    assert drawn is not None
    assert drawn[0]["obs"].tolist() == [0, 0]
    drawn[0]["obs"].fill_(5)
    again = buffer.sample(1)
    assert again is not None
    assert again[0]["obs"].tolist() == [0, 0]


@pytest.mark.parametrize("item", ["text", 3, (1, 2), {"a"}, None])
def test_any_object_can_be_stored(item: Any, tmp_path: Path) -> None:
    buffer = buffer_of(3)
    buffer.push(item)
    buffer.push([item, item])
    assert buffer.sample(2) == [item, item]
    buffer.save_data(tmp_path / "data")
    other = buffer_of(3)
    other.load_data(tmp_path / "data")
    assert other.sample(3) == [item] * 3


def test_nested_samples_come_back_exactly(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {
            "obs": {"image": rng.integers(0, 255, (2, 2), dtype=np.uint8), "pair": (i, i / 3)},
            "name": f"step {i}",
            "reward": torch.tensor(i / 7),
        }
        for i in range(6)
    ]
    buffer = buffer_of(5)
    buffer.push(rows)
    buffer.save_data(tmp_path / "data")
    other = buffer_of(5)
    other.load_data(tmp_path / "data")
    for _ in range(3):  # the draws are the same, too
        a, b = buffer.sample(3), other.sample(3)
        assert a is not None
        assert b is not None
        for x, y in zip(a, b, strict=True):
            assert x["name"] == y["name"]
            assert torch.equal(x["obs"]["image"], y["obs"]["image"])
            assert x["obs"]["pair"] == y["obs"]["pair"]
            assert x["reward"] == y["reward"]
            i = int(x["name"].split()[1])
            assert x["obs"]["image"].dtype == torch.uint8
            assert np.array_equal(x["obs"]["image"], rows[i]["obs"]["image"])  # type: ignore[index]


def test_wrong_samples_are_refused_and_change_nothing() -> None:
    buffer = buffer_of(4)
    buffer.push([{"obs": {"a": np.zeros(2)}, "x": i} for i in range(2)])
    with pytest.raises(ValueError, match=r"\['x', 'y'\].*holds \['obs', 'x'\]"):
        buffer.push({"x": 1, "y": 2})
    with pytest.raises(ValueError, match=r"\['obs'\]\['a'\] have shape \(3,\).*\(2,\)"):
        buffer.push({"x": 1, "obs": {"a": np.zeros(3)}})
    with pytest.raises(ValueError, match=r"\['x'\] are float64.*int64"):
        buffer.push({"x": np.array(0.5), "obs": {"a": np.zeros(2)}})
    assert buffer.count() == 2
    assert contents(buffer) == [0, 1]


def test_numbers_are_never_cut_off() -> None:
    buffer = buffer_of(4)
    for n in (1, 2):
        buffer.push([{"x": 1, "y": np.float32(1)}] * n)
    with pytest.raises(ValueError, match=r"\['x'\] are float32"):
        buffer.push([{"x": 1.5, "y": np.float32(1)}] * 2)
    buffer.push([{"x": 3, "y": np.float64(2)}])  # less exact, but no other kind
    assert contents(buffer) == [1, 1, 1, 3]


def test_state_that_does_not_fit() -> None:
    large = buffer_of(10)
    large.push([{"x": i} for i in range(10)])
    with pytest.raises(ConfigError, match="10 stored samples"):
        buffer_of(4).load_state_dict(large.state_dict())
    empty = buffer_of(3)
    empty.load_state_dict(buffer_of(3).state_dict())
    assert empty.count() == 0


def test_by_name_and_limits() -> None:
    assert isinstance(create_buffer(dict(type="naive")), get_buffer_cls(dict(type="naive")))
    with pytest.raises(ConfigError, match="replay_buffer_size = 0"):
        buffer_of(0)


def test_flow_is_logged(tmp_path: Path) -> None:
    cfg = dict(replay_buffer_size=4, periodic_thruput_seconds=0)
    buffer = NaiveReplayBuffer(cfg, exp_name=str(tmp_path))
    buffer.push([{"x": 1}, {"x": 2}])
    buffer.close()
    assert "pushed 2" in (tmp_path / "log" / "buffer" / "buffer_logger.txt").read_text()


def test_uniform_buffers_do_not_load_the_compiler() -> None:
    code = """
import sys
from ding.worker import NaiveReplayBuffer
buffer = NaiveReplayBuffer({"replay_buffer_size": 4})
buffer.push([{"x": 1}, {"x": 2}])
buffer.sample(2)
sys.exit("numba" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("n", "size"), [(9, 3), (10, 4), (6, 6), (5, 1)])
@pytest.mark.parametrize("replace", [False, True])
def test_draws_are_even(n: int, size: int, replace: bool) -> None:
    rng, rounds = np.random.default_rng(0), 4000
    drawn = np.array([draw(rng, n, size, replace) for _ in range(rounds)])
    repeats = any(len(set(row)) < size for row in drawn.tolist())
    assert repeats == (replace and size > 1)
    counts = np.array([np.bincount(column, minlength=n) for column in drawn.T])  # (size, n)
    assert counts.shape == (size, n)
    # Each index as often as any other, in every place of a draw: 5 standard deviations.
    assert np.abs(counts - rounds / n).max() < 5 * np.sqrt(rounds / n)
