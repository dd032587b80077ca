from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ding.envs.manager.columns import (
    ActionRows,
    RowError,
    has_nan,
    obs_columns,
    reward_column,
    stack_checked,
)

NESTED = spaces.Dict(a=spaces.Box(-1, 1, (2,)), t=spaces.Tuple([spaces.Discrete(3)]))


def test_box_columns_are_new_memory() -> None:
    columns = obs_columns(spaces.Box(-1, 1, (2,)))
    row = np.float32([1, 2])
    stacked = columns.stack([row, np.float64([3, 4])])
    row[:] = 0
    assert stacked.tolist() == [[1, 2], [3, 4]]
    assert stacked.dtype == np.float32
    changed = columns.replaced(stacked, np.array([1]), np.float32([[9, 9]]))
    assert changed.tolist() == [[1, 2], [9, 9]]
    assert stacked.tolist() == [[1, 2], [3, 4]]


def test_nested_columns() -> None:
    columns = obs_columns(NESTED)
    stacked = columns.stack([{"a": [0, 1], "t": (2,)}, {"a": np.zeros(2), "t": (np.array([1]),)}])
    assert stacked["a"].dtype == np.float32
    assert stacked["t"][0].tolist() == [2, 1]
    part = columns.stack([{"a": [5, 5], "t": (0,)}])
    assert columns.replaced(stacked, np.array([0]), part)["t"][0].tolist() == [0, 1]
    with pytest.raises(RowError, match=r"obs does not have the parts \['a', 't'\]"):
        columns.stack([{"a": [0, 1]}])


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (np.zeros((2, 1), dtype=np.float32), r"obs has shape \(2, 1\)"),
        (np.zeros(3, dtype=np.float32), r"shape \(3,\) and dtype float32, but .* \(2,\) and uint8"),
        (np.zeros(2, dtype=np.float32), "dtype float32, but .* uint8"),
        ("text", "dtype <U4"),
    ],
)
def test_misfits_are_described(row: object, text: str) -> None:
    good = np.zeros(2, dtype=np.uint8)
    with pytest.raises(RowError, match=text):
        obs_columns(spaces.Box(0, 255, (2,), dtype=np.uint8)).stack([good, row])


def test_unknown_space_stacks_what_comes() -> None:
    columns = obs_columns(None)
    stacked = columns.stack([np.zeros(2), np.ones(2)])
    assert stacked.shape == (2, 2)
    ragged = columns.replaced(stacked, np.array([0]), columns.stack([np.zeros(3)]))
    assert [len(row) for row in ragged] == [3, 2]


@pytest.mark.parametrize("size", [4, 4000])
def test_has_nan(size: int) -> None:
    array = np.full((2, size), 3e38, dtype=np.float32)
    array[0, :2] = np.inf, -np.inf
    assert not has_nan(array)
    array[1, 3] = np.nan
    assert has_nan({"a": (np.zeros(1), array)})
    assert not has_nan(np.zeros((0, 3)))
    assert not has_nan(np.zeros(3, dtype=int))
    assert not has_nan(np.array([None, "x"], dtype=object))


def test_stack_checked_names_the_field() -> None:
    with pytest.raises(RowError, match=r"obs\['a'\] is NaN; .*max_retry>1"):
        stack_checked(obs_columns(NESTED), [{"a": [np.nan, 0], "t": (0,)}])


def test_reward_column() -> None:
    assert reward_column([1, np.array([2.0])[0], torch.tensor(3)]).tolist() == [1, 2, 3]
    assert reward_column([np.array([1.0]), np.array([2.0])]).tolist() == [1, 2]
    assert reward_column([0.0, np.array([2.0])]).tolist() == [0, 2]
    assert reward_column([np.zeros(2), np.ones(2)]).shape == (2, 2)
    assert reward_column([1.0]).dtype == np.float32
    with pytest.raises(RowError, match="are no numbers"):
        reward_column([1.0, "x"])


def test_discrete_actions() -> None:
    split = ActionRows(spaces.Discrete(4), python_actions=True)
    for actions in (np.array([1, 2]), np.array([[1], [2]]), torch.tensor([1, 2])):
        assert split(actions, 2) == [1, 2]
        assert type(split(actions, 2)[0]) is int
    rows = ActionRows(spaces.Discrete(4), python_actions=False)(np.array([1, 2]), 2)
    assert all(isinstance(row, np.ndarray) and row.shape == () for row in rows)


def test_box_and_nested_actions() -> None:
    rows = ActionRows(spaces.Box(-1, 1, (1,)), python_actions=True)(np.array([0.5, 1.0]), 2)
    assert [row.tolist() for row in rows] == [[0.5], [1.0]]
    actions = {"a": np.zeros((2, 2)), "t": (np.array([1, 2]),)}
    nested = ActionRows(NESTED, python_actions=True)(actions, 2)
    assert nested[1]["t"][0] == 2
    assert nested[0]["a"].shape == (2,)


@pytest.mark.parametrize(
    ("space", "actions", "text"),
    [
        (spaces.Discrete(2), np.zeros(2), "actions must have the dtype int64, got float64"),
        (spaces.Discrete(2), np.zeros((2, 3), int), r"must have the shape \(2,\), got \(2, 3\)"),
        (spaces.Box(-1, 1, (3,)), np.zeros((2, 2)), r"shape \(2, 3\), got \(2, 2\)"),
        (spaces.Box(-1, 1, (3,)), {"a": 1}, "got dict"),
        (NESTED, {"a": np.zeros((2, 2))}, r"must be a dict with the keys \['a', 't'\]"),
        (NESTED, {"a": np.zeros((2, 2)), "t": ()}, r"action\['t'\] must be a tuple of 1"),
    ],
)
def test_wrong_actions(space: spaces.Space, actions: object, text: str) -> None:
    with pytest.raises(RowError, match=text):
        ActionRows(space, python_actions=True)(actions, 2)
