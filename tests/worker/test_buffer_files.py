"""Snapshots, damaged files, mapped storage and the files of samples."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.utils.batch import Rows
from ding.utils.errors import CheckpointError
from ding.worker.buffer import (
    AdvancedReplayBuffer,
    NaiveReplayBuffer,
    SequenceReplayBuffer,
    datafile,
)


def rows_of(low: int, high: int) -> Rows:
    x = np.arange(low, high)
    return Rows({"x": x, "obs": np.repeat(x[:, None], 300, axis=1).astype(np.float32)})


def same_state(a: dict[str, Any], b: dict[str, Any]) -> bool:
    if {k: v for k, v in a.items() if k != "arrays"} != {
        k: v for k, v in b.items() if k != "arrays"
    }:
        return False
    arrays = a["arrays"], b["arrays"]
    return arrays[0].keys() == arrays[1].keys() and all(
        np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0]
    )


@pytest.mark.parametrize("size", [40, 1000])
def test_a_snapshot_is_of_one_moment(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is held up at every piece while everything changes."""
    go = threading.Semaphore(0)
    original = datafile._parts

    def slow(source: Any) -> Any:
        for part in original(source):
            go.acquire()
            yield part

    monkeypatch.setattr(datafile, "_parts", slow)
    monkeypatch.setattr("ding.worker.buffer.snapshot._PART", 2000)
    buffer = AdvancedReplayBuffer(dict(replay_buffer_size=size, max_use=6))
    buffer.push(rows_of(0, 60))
    buffer.sample(16)
    before = buffer.state_dict()
    snapshot = buffer.snapshot(tmp_path / "data")
    for i in range(150):
        go.release()
        buffer.push(rows_of(100 + 3 * i, 103 + 3 * i))
        drawn: Any = buffer.sample(8)
        buffer.update({**drawn.columns, "priority": np.arange(8) + i})
    for _ in range(2000):
        go.release()
    snapshot.wait()
    monkeypatch.undo()
    other = AdvancedReplayBuffer(dict(replay_buffer_size=size, max_use=6))
    other.load_data(tmp_path / "data")
    restored = other.state_dict()
    before.pop("limits"), restored.pop("limits")  # these fade by the clock
    assert same_state(before, restored)


def test_a_snapshot_of_links(tmp_path: Path) -> None:
    buffer = SequenceReplayBuffer(dict(replay_buffer_size=30, unroll_len=2))
    steps = Rows({"x": np.arange(20), "done": np.zeros(20, bool)})
    buffer.push(steps)
    before = buffer.state_dict()
    snapshot = buffer.snapshot(tmp_path / "data")
    buffer.push(steps)
    snapshot.wait()
    other = SequenceReplayBuffer(dict(replay_buffer_size=30, unroll_len=2))
    other.load_data(tmp_path / "data")
    assert same_state(before, other.state_dict())


def test_a_snapshot_of_frames(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frames = rng.integers(0, 255, (204, 40, 40), dtype=np.uint8)
    stacks = np.lib.stride_tricks.sliding_window_view(frames, 4, axis=0).transpose(0, 3, 1, 2)
    rows = {"obs": stacks[:-1], "next_obs": stacks[1:], "x": np.arange(200)}
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=50))
    buffer.push(Rows({k: v[:70] for k, v in rows.items()}))
    expected = buffer._store.read(np.arange(50))  # type: ignore[union-attr]
    snapshot = buffer.snapshot(tmp_path / "data")
    buffer.push(Rows({k: v[70:200] for k, v in rows.items()}))
    snapshot.wait()
    buffer.push(Rows({k: v[:10] for k, v in rows.items()}))  # what waited is free again
    other = NaiveReplayBuffer(dict(replay_buffer_size=50))
    other.load_data(tmp_path / "data")
    found = other._store.read(np.arange(50))  # type: ignore[union-attr]
    assert all(np.array_equal(expected[k], found[k]) for k in expected)
    assert buffer._store.frames.limbo is None  # type: ignore[union-attr]


def test_errors_of_a_snapshot_are_told(tmp_path: Path) -> None:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=4))
    buffer.push(rows_of(0, 4))
    (tmp_path / "file").touch()
    snapshot = buffer.snapshot(tmp_path / "file" / "below")
    with pytest.raises(OSError, match="file"):
        snapshot.wait()
    buffer.push(rows_of(4, 6))
    assert buffer.count() == 4


@pytest.mark.parametrize("damage", ["cut", "flip", "head", "empty", "foreign", "missing"])
def test_damage_is_refused_and_nothing_changes(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    source = NaiveReplayBuffer(dict(replay_buffer_size=100))
    source.push(rows_of(0, 100))
    source.save_data(path)
    raw = bytearray(path.read_bytes())
    if damage == "cut":
        raw = raw[: len(raw) // 2]
    elif damage in ("flip", "head"):
        raw[len(raw) // 3 if damage == "flip" else len(raw) - 100] ^= 1
    elif damage == "empty":
        raw = bytearray()
    elif damage == "foreign":
        raw = bytearray(b"x" * 500)
    path.write_bytes(raw)
    if damage == "missing":
        path.unlink()
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=100))
    buffer.push(rows_of(200, 203))
    before = buffer.state_dict()
    with pytest.raises(CheckpointError, match="data"):
        buffer.load_data(path)
    assert same_state(before, buffer.state_dict())
    assert not list(tmp_path.glob(".*"))


def test_mapped_storage_is_the_same(tmp_path: Path) -> None:
    mapped = AdvancedReplayBuffer(
        dict(replay_buffer_size=50, storage="mmap", storage_path=str(tmp_path / "scratch"))
    )
    plain = AdvancedReplayBuffer(dict(replay_buffer_size=50))
    plain._rng.bit_generator.state = mapped._rng.bit_generator.state
    for buffer in (mapped, plain):
        buffer.push(rows_of(0, 70))
    a: Any = mapped.sample(16)
    b: Any = plain.sample(16)
    assert all(np.array_equal(a.columns[k], b.columns[k]) for k in b.columns)
    assert (tmp_path / "scratch").is_dir()
    assert not list((tmp_path / "scratch").iterdir())  # nothing is left if the process dies
    mapped.save_data(tmp_path / "data")
    again = AdvancedReplayBuffer(dict(replay_buffer_size=50))
    again.load_data(tmp_path / "data")
    expected, found = mapped.state_dict()["arrays"], again.state_dict()["arrays"]
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


def meta_rows(directory: Path, low: int, high: int) -> list[dict[str, Any]]:
    rows = []
    for i in range(low, high):
        path = directory / f"step_{i}"
        path.write_text("full data")
        rows.append({"x": i, "file_path": str(path)})
    return rows


def files(directory: Path) -> list[int]:
    return sorted(int(path.name.split("_")[1]) for path in directory.glob("step_*"))


def test_files_go_with_their_samples(tmp_path: Path) -> None:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=4, enable_track_used_data=True))
    buffer.push(meta_rows(tmp_path, 0, 6))
    assert files(tmp_path) == [2, 3, 4, 5]
    buffer.push(meta_rows(tmp_path, 6, 7))
    assert files(tmp_path) == [3, 4, 5, 6]
    buffer.clear()
    assert files(tmp_path) == []
    untracked = NaiveReplayBuffer(dict(replay_buffer_size=1))
    untracked.push(meta_rows(tmp_path, 0, 2))
    assert files(tmp_path) == [0, 1]


@pytest.mark.parametrize("by_release", [True, False])
def test_files_stay_while_a_batch_needs_them(tmp_path: Path, by_release: bool) -> None:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=4, enable_track_used_data=True))
    buffer.push(meta_rows(tmp_path, 0, 4))
    first, second = buffer.sample(4), buffer.sample(4)
    buffer.push(meta_rows(tmp_path, 4, 8))
    assert files(tmp_path) == list(range(8))
    if by_release:
        buffer.release(first)
        buffer.release(first)  # once is enough
    del first
    gc.collect()
    assert files(tmp_path) == list(range(8))
    buffer.release(second)
    assert files(tmp_path) == [4, 5, 6, 7]


def test_released_before_removed(tmp_path: Path) -> None:
    cfg = dict(replay_buffer_size=4, enable_track_used_data=True, max_use=1)
    buffer = AdvancedReplayBuffer(cfg)
    buffer.push(meta_rows(tmp_path, 0, 4))
    drawn: Any = buffer.sample(2)
    used = sorted(drawn.columns["x"].tolist())
    assert buffer.count() == 2  # used up, but in use
    assert files(tmp_path) == [0, 1, 2, 3]
    buffer.release(drawn)
    assert files(tmp_path) == sorted({0, 1, 2, 3} - set(used))
    buffer.push(meta_rows(tmp_path, 10, 14))
    assert files(tmp_path) == [10, 11, 12, 13]


def test_memory_per_transition() -> None:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=1000))
    obs = np.zeros((10, 4), np.float32)
    flags = np.zeros(10, bool)
    cartpole = {"obs": obs, "next_obs": obs, "action": np.zeros(10, np.int64)}
    cartpole |= {"reward": np.zeros(10, np.float32), "done": flags, "truncated": flags}
    buffer.push(Rows(cartpole))
    held = sum(array.nbytes for array in buffer._store.arrays.values())  # type: ignore[union-attr]
    assert held / 1000 <= 1.05 * 46
    odd = NaiveReplayBuffer(dict(replay_buffer_size=1000))
    odd.push(Rows({**cartpole, "discount": np.zeros(10, np.float32), "it": np.zeros(10, int)}))
    held = sum(array.nbytes for array in odd._store.arrays.values())  # type: ignore[union-attr]
    assert held / 1000 <= 1.05 * 58
