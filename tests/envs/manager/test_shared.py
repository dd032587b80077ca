from __future__ import annotations

import multiprocessing
import os
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs.manager.columns import RowError, reward_shape
from ding.envs.manager.workers.shared_block import (
    ColumnSpec,
    SharedBlock,
    row_writer,
    space_specs,
)

SPACE = gym.spaces.Dict(
    {
        "image": gym.spaces.Box(0, 255, (2, 2), dtype=np.uint8),
        "pair": gym.spaces.Tuple((gym.spaces.Discrete(5), gym.spaces.MultiDiscrete([2, 3]))),
    }
)


def test_specs_of_spaces() -> None:
    assert space_specs(gym.spaces.Box(-1, 1, (3,), dtype=np.float32), 4) == ColumnSpec(
        (4, 3), np.dtype(np.float32)
    )
    assert space_specs(SPACE, 2) == {
        "image": ColumnSpec((2, 2, 2), np.dtype(np.uint8)),
        "pair": (
            ColumnSpec((2,), np.dtype(np.int64)),
            ColumnSpec((2, 2), np.dtype(np.int64)),
        ),
    }
    for space in (
        None,
        gym.spaces.Text(3),
        gym.spaces.Sequence(gym.spaces.Discrete(2)),
        gym.spaces.Dict({"a": gym.spaces.Discrete(2), "b": gym.spaces.Text(3)}),
        gym.spaces.Dict({}),
    ):
        assert space_specs(space, 2) is None
    assert reward_shape(None) == ()
    assert reward_shape(gym.spaces.Box(0, 1, (1,))) == ()
    assert reward_shape(gym.spaces.Box(0, 1, (3,))) == (3,)


def write(block: SharedBlock) -> None:
    row_writer(SPACE, block["obs"])(
        1, {"image": np.full((2, 2), 7, dtype=np.uint8), "pair": (4, np.array([1, 2]))}
    )


def test_what_another_process_writes_is_seen() -> None:
    fields = {"odd": ColumnSpec((3,), np.dtype(np.uint8)), "obs": space_specs(SPACE, 2)}
    block = SharedBlock(fields)
    mp: Any = multiprocessing.get_context("fork")
    process = mp.Process(target=write, args=(block,))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert block["obs"]["image"].tolist() == [[[0, 0], [0, 0]], [[7, 7], [7, 7]]]
    assert block["obs"]["pair"][0].tolist() == [0, 4]
    assert block["obs"]["pair"][1].tolist() == [[0, 0], [1, 2]]
    assert block["odd"].tolist() == [0, 0, 0]
    os.close(block.fd.number)


def block_of(space: Any) -> tuple[Any, Any]:
    column = SharedBlock({"obs": space_specs(space, 2)})["obs"]
    return row_writer(space, column), column


def test_rows_are_checked() -> None:
    put, column = block_of(gym.spaces.Box(-1, 1, (2,), dtype=np.float32))
    put(1, np.array([1.5, 2.5]))  # float64 is narrowed
    put(0, [np.inf, -np.inf])
    assert column.tolist() == [[np.inf, -np.inf], [1.5, 2.5]]
    for row, text in [
        (np.zeros(1, dtype=np.float32), r"obs has shape \(1,\) .* declares \(2,\)"),
        (np.zeros(2, dtype=complex), "dtype complex128"),
        (np.array([0, np.nan], dtype=np.float32), "obs is NaN"),
        (None, "obs is None"),
    ]:
        with pytest.raises(RowError, match=text):
            put(1, row)
    assert column[1].tolist() == [1.5, 2.5]


def test_large_numbers_are_no_nan() -> None:
    put, column = block_of(gym.spaces.Box(-1, 1, (2,), dtype=np.float32))
    put(0, np.array([1e30, 1e30], dtype=np.float32))
    assert column[0, 0] == np.float32(1e30)


def test_parts_of_trees_are_named() -> None:
    put, _ = block_of(SPACE)
    image = np.zeros((2, 2), dtype=np.uint8)
    with pytest.raises(RowError, match="does not have the parts"):
        put(0, {"image": image})
    with pytest.raises(RowError, match=r"obs\['pair'\]\[1\] has shape \(3,\)"):
        put(0, {"image": image, "pair": (1, np.zeros(3, dtype=int))})
