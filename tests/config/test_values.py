from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Optional

import numpy as np
import pytest

from ding.config.values import Misfit, describe, fit, fits, hint_like, plain_scalar


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1e5, int, 100000),
        (3, float, 3.0),
        (None, int | None, None),
        (1.0, int | float, 1.0),
        (2.0, int | None, 2),
        ([1, 2], tuple[int, ...], (1, 2)),
        ((1, 2), list[float], [1.0, 2.0]),
        ([1, "a"], tuple[int, str], (1, "a")),
        ((1, 2), Sequence[int], [1, 2]),
        ((1, 2), list[int] | tuple[int, ...], (1, 2)),
        (1, float | int, 1),
        ([1.0, 2], tuple[int, int], (1, 2)),
        (len, str | Callable[..., int], len),
        ({"a": 1}, dict[str, float], {"a": 1.0}),
        ({"a": 1}, Mapping, {"a": 1}),
        ("exp", Literal["exp", "linear"], "exp"),
        (Path("a"), str, "a"),
        (len, Callable[..., int], len),
        ("x", Optional[str], "x"),  # noqa: UP045
        (object, Any, object),
    ],
)
def test_values_become_what_the_hint_wants(value: Any, hint: Any, expected: Any) -> None:
    got = fit(value, hint)
    assert got == expected and type(got) is type(expected)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (True, float),
        (1, bool),
        (1.5, int),
        (float("inf"), int),
        ("1", int),
        (None, int),
        (1, str),
        ("ab", list[str]),
        ([1, "a"], list[int]),
        ([1], tuple[int, int]),
        ({"a": "b"}, dict[str, int]),
        (True, Literal[1]),
        ("x", int | None),
        (3, dict),
        (3, Callable[..., int]),
        (3, Path),
    ],
)
def test_what_does_not_fit(value: Any, hint: Any) -> None:
    with pytest.raises(Misfit):
        fit(value, hint)


@pytest.mark.parametrize(
    ("value", "example"),
    [
        (1.5, 1),
        (1, 1.5),
        (float("inf"), 3),
        ((1,), [2]),
        ("a", "b"),
        (3, None),
        (False, True),
        ("sync", "auto"),
        (4, "auto"),
        (0.5, "auto"),
    ],
)
def test_examples_stand_for_their_kind(value: Any, example: Any) -> None:
    got = fit(value, hint_like(example))
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("value", "example"),
    [
        (True, 1),
        (1, True),
        (None, 1),
        (3, "a"),
        ("a", []),
        ("1", 1.0),
        (True, "auto"),
        ([], "auto"),
    ],
)
def test_what_is_unlike_the_example(value: Any, example: Any) -> None:
    assert not fits(value, hint_like(example))


@pytest.mark.parametrize("value", ["auto", "sync", 4, 0.5])
def test_auto_stands_for_names_and_numbers(value: Any) -> None:
    assert fit(value, hint_like("auto")) == value


def test_hints_are_described_as_written() -> None:
    assert describe(int | None) == "int | None"
    assert describe(Literal["a", "b"]) == "one of 'a', 'b'"
    assert describe(tuple[int, ...]) == "tuple[int, ...]"


def test_numpy_scalars_become_numbers() -> None:
    assert type(plain_scalar(np.int64(3))) is int and type(plain_scalar(np.float32(0.5))) is float
    assert plain_scalar("a") == "a"
