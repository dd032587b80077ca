from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ding.envs.spaces import action_map, check_supported, narrow, narrow_space
from ding.utils.errors import DingError


def test_narrow_keeps_all_but_float64() -> None:
    obs = {"a": np.zeros(2), "b": (np.zeros(1, dtype=np.uint8), 3), "c": np.float16(1)}
    narrowed = narrow(obs)
    assert narrowed["a"].dtype == np.float32
    assert narrowed["b"][0].dtype == np.uint8
    assert narrowed["b"][1].dtype == np.int64
    assert narrowed["c"].dtype == np.float16


def test_narrow_space_keeps_bounds() -> None:
    box = spaces.Box(np.array([-np.inf, -1e300]), np.array([1.5, np.inf]), dtype=np.float64)
    space = narrow_space(spaces.Dict(a=box, b=spaces.Tuple([spaces.Discrete(3)])))
    assert isinstance(space, spaces.Dict)
    part = space["a"]
    assert isinstance(part, spaces.Box)
    assert part.dtype == np.float32
    assert part.low.tolist() == [-np.inf, float(np.finfo(np.float32).min)]
    assert part.high.tolist() == [1.5, np.inf]
    assert space["b"] == spaces.Tuple([spaces.Discrete(3)])


@pytest.mark.parametrize("action", [2, np.int64(2), np.array(2), np.array([2]), torch.tensor([2])])
def test_discrete_actions_of_any_kind(action: object) -> None:
    mapped = action_map(spaces.Discrete(4, start=10), scale=True)
    assert mapped(action) == 12
    assert type(mapped(action)) is int
    assert mapped.presented == spaces.Discrete(4)


def test_scaled_action() -> None:
    mapped = action_map(spaces.Box(np.float32([-2, 0]), np.float32([2, 10])), scale=True)
    assert mapped.presented == spaces.Box(-1, 1, (2,))
    assert mapped(np.array([-1, -1])).tolist() == [-2, 0]
    assert mapped(np.array([0.5, 0.0])).tolist() == [1, 5]
    assert mapped(torch.tensor([7.0, -7.0])).tolist() == [2, 0]
    assert np.isnan(mapped(np.array([np.nan, 0.0]))[0])


@pytest.mark.parametrize(
    ("space", "scale"),
    [
        (spaces.Box(-2, 2, (1,)), False),
        (spaces.Box(-np.inf, 2, (1,)), True),
        (spaces.Box(0, 10**6, (1,), dtype=np.int64), True),
    ],
)
def test_other_actions_pass(space: spaces.Space, scale: bool) -> None:
    mapped = action_map(space, scale)
    assert mapped.presented is space
    result = mapped([5])
    assert result.tolist() == [5]
    assert result.dtype == space.dtype


def test_multi_discrete_start() -> None:
    mapped = action_map(spaces.MultiDiscrete([3, 4], start=[1, 2]), scale=True)
    assert mapped.presented == spaces.MultiDiscrete([3, 4])
    assert mapped([0, 1]).tolist() == [1, 3]


def test_nested_action() -> None:
    parts = spaces.Dict(go=spaces.Discrete(2), turn=spaces.Tuple([spaces.Box(0, 4, (1,))]))
    mapped = action_map(parts, scale=True)
    action = mapped({"action_type": np.array(1), "action_args": np.array([0.0])})
    assert action["go"] == 1
    assert action["turn"][0].tolist() == [2.0]
    assert mapped.presented["action_args"] == spaces.Box(-1, 1, (1,))  # type: ignore[index]


def test_unsupported_space_is_named() -> None:
    inner = spaces.Tuple([spaces.Text(3)])
    with pytest.raises(DingError, match=r"obs\['a'\]\[0\] is a Text space"):
        check_supported(spaces.Dict(a=inner), "obs")


def test_boxes_of_any_shape_are_vectors_to_the_policy() -> None:
    mapped = action_map(spaces.Box(0, 4, (2, 2), dtype=np.float32), scale=True)
    assert mapped.presented == spaces.Box(-1, 1, (4,))
    assert mapped(np.array([-1, 0, 1, 9])).tolist() == [[0, 2], [4, 4]]
    assert mapped(np.zeros((3, 4))).shape == (3, 2, 2)
    knob = action_map(spaces.Box(0, 4, (), dtype=np.float32), scale=False)
    assert knob.presented == spaces.Box(0, 4, (1,)) and knob([3.0]).shape == ()


def test_bits_and_few_whole_numbers_are_choices() -> None:
    bits = action_map(spaces.MultiBinary([2, 2]), scale=True)
    assert bits.presented == spaces.MultiDiscrete([2, 2, 2, 2])
    assert bits([0, 1, 1, 0]).tolist() == [[0, 1], [1, 0]] and bits([0, 1, 1, 0]).dtype == np.int8
    whole = action_map(spaces.Box(-2, 2, (2,), dtype=np.int32), scale=True)
    assert whole.presented == spaces.MultiDiscrete([5, 5])
    assert whole([0, 4]).tolist() == [-2, 2] and whole([0, 4]).dtype == np.int32


def test_parts_of_one_kind_are_joined() -> None:
    parts = spaces.Tuple([spaces.Discrete(2, start=5), spaces.MultiDiscrete([2, 3])])
    choices = action_map(parts, scale=True)
    assert choices.presented == spaces.MultiDiscrete([2, 2, 3])
    number, pair = choices(np.array([1, 0, 2]))
    assert number == 6 and pair.tolist() == [0, 2]
    boxes = action_map(spaces.Dict(a=spaces.Box(0, 2, (1,)), b=spaces.Box(-3, 3, (2,))), scale=True)
    assert boxes.presented == spaces.Box(-1, 1, (3,))
    assert {key: part.tolist() for key, part in boxes(np.array([1.0, 0, -1])).items()} == {
        "a": [2],
        "b": [0, -3],
    }
