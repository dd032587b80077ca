from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from ding.worker.buffer import AdvancedReplayBuffer, NaiveReplayBuffer

K = 4


def steps(n_env: int, n: int, seed: int = 0, shape: tuple[int, ...] = (36, 36)) -> list[Any]:
    """Rows of several envs in turn; stacks as after a frame-stack wrapper, some truncated."""
    rng = np.random.default_rng(seed)
    stacks: list[Any] = [None] * n_env
    rows = []
    for t in range(n):
        for env in range(n_env):
            if stacks[env] is None:
                first = rng.integers(0, 255, shape, dtype=np.uint8)
                stacks[env] = np.stack([first] * K)
            frame = rng.integers(0, 255, (1, *shape), dtype=np.uint8)
            next_obs = np.concatenate([stacks[env][1:], frame])
            done = bool(rng.random() < 0.15)
            row = dict(obs=stacks[env], next_obs=next_obs, reward=np.float32(t), done=done)
            rows.append(row | dict(truncated=done and bool(rng.random() < 0.5), episode_id=env))
            stacks[env] = None if done else next_obs
    return rows


def all_of(buffer: Any) -> dict[str, Any]:
    return buffer._store.read(buffer._slots(np.arange(buffer._serial - buffer._oldest)))


def assert_same(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert a.keys() == b.keys()
    for key in a:
        assert a[key].dtype == b[key].dtype
        assert np.array_equal(a[key], b[key]), key


@pytest.mark.parametrize("shape", [(36, 36), (33, 35)])
@pytest.mark.parametrize("n_env", [1, 3])
@pytest.mark.parametrize("storage", ["ram", "mmap"])
def test_equal_to_the_plain_store(shape: tuple[int, ...], n_env: int, storage: str) -> None:
    rows = steps(n_env, 120 // n_env, shape=shape)
    once = NaiveReplayBuffer(dict(replay_buffer_size=50, storage=storage))
    plain = NaiveReplayBuffer(dict(replay_buffer_size=50, frame_stack=0))
    for start in range(0, len(rows), 7):
        for buffer in (once, plain):
            buffer.push(rows[start : start + 7])
        assert_same(all_of(once), all_of(plain))
    assert once._store.frames is not None  # type: ignore[union-attr]
    assert plain._store.frames is None  # type: ignore[union-attr]
    # Each frame once: a frame per step and one more per episode and env.
    episodes = sum(row["done"] for row in rows[-50:]) + n_env
    n_frame = once._store.frames._counts[1] - once._store.frames._counts[0]  # type: ignore[union-attr]
    assert n_frame <= 50 + 2 * K * episodes


def test_nstep_rows_share_frames_too() -> None:
    rows = steps(1, 60)
    jumped = [{**a, "next_obs": b["next_obs"]} for a, b in zip(rows, rows[2:], strict=False)]
    once = NaiveReplayBuffer(dict(replay_buffer_size=40, frame_stack=K))
    plain = NaiveReplayBuffer(dict(replay_buffer_size=40, frame_stack=0))
    for buffer in (once, plain):
        buffer.push(jumped)
    assert_same(all_of(once), all_of(plain))


def test_what_is_drawn_stays_as_it_is() -> None:
    buffer = AdvancedReplayBuffer(dict(replay_buffer_size=40))
    buffer.push(steps(1, 40))
    drawn = [buffer.sample(8) for _ in range(6)]
    assert all(isinstance(rows, Rows) for rows in drawn)
    kept = [rows.columns["obs"].copy() for rows in drawn]  # type: ignore[union-attr]
    buffer.push(steps(1, 40, seed=1))
    for _ in range(6):
        buffer.sample(8)
    for rows, before in zip(drawn, kept, strict=True):
        assert np.array_equal(rows.columns["obs"], before)  # type: ignore[union-attr]


def test_state_and_file(tmp_path: Path) -> None:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=30))
    buffer.push(steps(2, 40))
    buffer.save_data(tmp_path / "data")
    loaded, larger = NaiveReplayBuffer(dict(replay_buffer_size=30)), NaiveReplayBuffer()
    loaded.load_data(tmp_path / "data")
    larger.load_state_dict(buffer.state_dict())
    for other in (loaded, larger):
        assert_same(all_of(other), all_of(buffer))
    for target in (buffer, loaded):
        target.push(steps(2, 10, seed=5))
    assert_same(all_of(loaded), all_of(buffer))


def test_detection() -> None:
    def frames_in(rows: Any, **cfg: Any) -> bool:
        buffer = NaiveReplayBuffer(dict(replay_buffer_size=8, **cfg))
        buffer.push(rows)
        return buffer._store.frames is not None  # type: ignore[union-attr]

    rows = steps(1, 4)
    assert frames_in(rows)
    assert not frames_in([{**row, "next_obs": row["obs"]} for row in rows])
    assert not frames_in(steps(1, 4, shape=(8, 8)))  # too small to be worth it
    assert frames_in(steps(1, 4, shape=(8, 8)), frame_stack=K)
    with pytest.raises(ConfigError, match=r"frame_stack = 3, but obs is \(4, 36, 36\)"):
        frames_in(rows, frame_stack=3)
    with pytest.raises(ConfigError, match="frame_stack = 4, but obs is"):
        frames_in([{"obs": np.zeros(4), "next_obs": np.zeros(4)}], frame_stack=4)
