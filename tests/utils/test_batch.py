from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ding.utils.batch import (
    ByEnv,
    Rows,
    columns_of,
    concat,
    length,
    stack,
    stacked_of,
    take,
    tree_map,
    unstack,
)


def columns(n: int = 3) -> dict[str, Any]:
    return {"obs": {"a": np.arange(2.0 * n).reshape(n, 2)}, "x": np.arange(n)}


def plain(rows: Any) -> list[Any]:
    return [{"a": row["obs"]["a"].tolist(), "x": int(row["x"])} for row in rows]


WANTED = [{"a": [0.0, 1.0], "x": 0}, {"a": [2.0, 3.0], "x": 1}, {"a": [4.0, 5.0], "x": 2}]

READS: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("isinstance", lambda r: isinstance(r, list), True),
    ("len", len, 3),
    ("bool", bool, True),
    ("iter", plain, WANTED),
    ("index", lambda r: int(r[-1]["x"]), 2),
    ("slice", lambda r: plain(r[1:]), WANTED[1:]),
    ("slice is a list", lambda r: isinstance(r[:1], list), True),
    ("backwards", lambda r: plain(r[::-1]), WANTED[::-1]),
    ("steps", lambda r: plain(r[::2]), WANTED[::2]),
    ("empty slice", lambda r: (len(r[5:]), list(r[5:])), (0, [])),
    ("add", lambda r: plain(r + r), WANTED * 2),
    ("add list", lambda r: (r + [7])[3:], [7]),  # noqa: RUF005
    ("radd list", lambda r: plain([] + r), WANTED),  # noqa: RUF005
    ("radd is full", lambda r: len([1] + r), 4),  # noqa: RUF005
    ("mul", lambda r: len(r * 2), 6),
    ("rmul", lambda r: len(2 * r), 6),
    ("reversed", lambda r: plain(reversed(r)), WANTED[::-1]),
    ("zip", lambda r: [int(row["x"]) * k for row, k in zip(r, [1, 2, 3], strict=True)], [0, 2, 6]),
    ("tuple", lambda r: plain(tuple(r)), WANTED),
    ("list", lambda r: type(list(r)) is list and plain(list(r)), WANTED),
    ("star", lambda r: plain([*r]), WANTED),
    ("sorted", lambda r: plain(sorted(r, key=lambda row: -int(row["x"]))), WANTED[::-1]),
    ("enumerate", lambda r: [i for i, _ in enumerate(r)], [0, 1, 2]),
    ("max", lambda r: int(max(r, key=lambda row: int(row["x"]))["x"]), 2),
    ("in", lambda r: r[0] in r, True),
    ("not in", lambda r: "z" in r, False),
    ("eq itself", lambda r: r == r, True),
    ("ne itself", lambda r: r != r, False),
    ("ne empty", lambda r: r != [], True),
    ("eq empty", lambda r: r == [], False),
    ("eq its list", lambda r: r == list(r), True),
    ("gt empty", lambda r: r > [], True),
    ("array", lambda r: np.array(r).shape, (3,)),
    ("extend list", lambda r: plain(_extended(r)), WANTED),
    ("assign slice", lambda r: plain(_assigned(r)), WANTED),
    ("copy", lambda r: plain(r.copy()), WANTED),
    ("copy.copy", lambda r: plain(copy.copy(r)), WANTED),
    ("deepcopy", lambda r: plain(copy.deepcopy(r)), WANTED),
    ("pickle", lambda r: plain(pickle.loads(pickle.dumps(r))), WANTED),
    ("json", lambda r: json.loads(json.dumps(tree_map(_tolist, list(r))))[2]["x"], 2),
    ("json itself", lambda r: json.dumps(r, default=_tolist).count("x"), 3),
    ("choice", lambda r: "x" in random.choice(r), True),
    ("count", lambda r: r.count("z"), 0),
    ("index of", lambda r: r.index(r[0]), 0),
    ("repr", lambda r: repr(r).count("obs"), 3),
    ("torch loader", lambda r: len(next(iter(_loader(r)))), 3),
    ("match", lambda r: _matched(r), 2),
    ("columns", lambda r: r.columns["x"].tolist(), [0, 1, 2]),
]


def _matched(rows: Any) -> Any:
    match rows:
        case [_, *rest]:
            return len(rest)
    return None


def _loader(rows: Any) -> Any:
    return torch.utils.data.DataLoader(rows, batch_size=3, collate_fn=list)


def _tolist(leaf: Any) -> Any:
    return leaf.tolist()


def _extended(rows: Any) -> list[Any]:
    out: list[Any] = []
    out.extend(rows)
    return out


def _assigned(rows: Any) -> list[Any]:
    out: list[Any] = [1, 2]
    out[:] = rows
    return out


@pytest.mark.parametrize("looked_at", [False, True])
@pytest.mark.parametrize(("name", "read", "wanted"), READS, ids=[r[0] for r in READS])
def test_rows_read_like_a_list(name: str, read: Any, wanted: Any, looked_at: bool) -> None:
    rows = Rows(columns())
    if looked_at:
        list(rows)
    assert read(rows) == wanted


CHANGES: list[tuple[str, Callable[[Any], Any]]] = [
    ("append", lambda r: r.append("new")),
    ("extend", lambda r: r.extend(["new", "newer"])),
    ("insert", lambda r: r.insert(1, "new")),
    ("pop", lambda r: r.pop()),
    ("pop first", lambda r: r.pop(0)),
    ("clear", lambda r: r.clear()),
    ("reverse", lambda r: r.reverse()),
    ("sort", lambda r: r.sort(key=lambda row: -int(row["x"]))),
    ("set", lambda r: r.__setitem__(0, "new")),
    ("set slice", lambda r: r.__setitem__(slice(0, 2), ["new"])),
    ("del", lambda r: r.__delitem__(0)),
    ("iadd", lambda r: r.__iadd__(["new"])),
    ("imul", lambda r: r.__imul__(2)),
    ("remove", lambda r: r.remove(r[0])),
]


def shown(rows: Any) -> list[Any]:
    return [row if isinstance(row, str) else int(row["x"]) for row in rows]


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=[c[0] for c in CHANGES])
def test_rows_change_like_a_list(name: str, change: Any) -> None:
    rows, reference = Rows(columns()), list(Rows(columns()))
    change(rows)
    change(reference)
    assert shown(rows) == shown(reference)
    assert len(rows) == len(reference)


def test_changed_rows_count_for_columns() -> None:
    rows = Rows(columns())
    rows[1]["x"] = 70
    rows.append({"obs": {"a": np.array([8.0, 9.0])}, "x": 4})
    assert rows.columns["x"].tolist() == [0, 70, 2, 4]
    assert columns_of(rows)["obs"]["a"][3].tolist() == [8.0, 9.0]
    assert isinstance(pickle.loads(pickle.dumps(rows)), list)
    rows[0]["x"].fill_(9)
    assert rows.columns["x"].tolist() == [9, 70, 2, 4]


def test_deepcopy_shares_nothing() -> None:
    item: list[int] = [1]
    column = np.empty(1, dtype=object)
    column[0] = item
    rows = Rows({"x": column, "y": np.zeros(1)})
    other = copy.deepcopy(rows)
    other[0]["x"].append(2)
    other[0]["y"].fill_(5)
    assert item == [1]
    assert float(rows[0]["y"]) == 0


def test_rows_without_rows() -> None:
    assert not Rows()
    assert list(Rows({"x": np.zeros((0, 2))})) == []
    assert Rows() == []


BY_ENV: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("isinstance", lambda d: isinstance(d, dict), True),
    ("len", len, 2),
    ("bool", bool, True),
    ("keys", lambda d: list(d.keys()), [4, 7]),
    ("iter", list, [4, 7]),
    ("values", lambda d: [float(v) for v in d.values()], [1.5, 2.5]),
    ("items", lambda d: {k: float(v) for k, v in d.items()}, {4: 1.5, 7: 2.5}),
    ("getitem", lambda d: float(d[7]), 2.5),
    ("get", lambda d: d.get(99, "no"), "no"),
    ("in", lambda d: (4 in d, 5 in d), (True, False)),
    ("dict", lambda d: dict(d), {4: 1.5, 7: 2.5}),
    ("stars", lambda d: {**d}, {4: 1.5, 7: 2.5}),
    ("or", lambda d: d | {1: 0.0}, {4: 1.5, 7: 2.5, 1: 0.0}),
    ("ror", lambda d: {1: 0.0} | d, {4: 1.5, 7: 2.5, 1: 0.0}),
    ("eq", lambda d: d == {4: 1.5, 7: 2.5}, True),
    ("ne", lambda d: d != {4: 1.5, 7: 2.5}, False),
    ("ne empty", lambda d: d != {}, True),
    ("copy", lambda d: d.copy(), {4: 1.5, 7: 2.5}),
    ("copy.copy", lambda d: copy.copy(d), {4: 1.5, 7: 2.5}),
    ("deepcopy", lambda d: copy.deepcopy(d), {4: 1.5, 7: 2.5}),
    ("pickle", lambda d: pickle.loads(pickle.dumps(d)), {4: 1.5, 7: 2.5}),
    ("json", lambda d: json.loads(json.dumps(dict(d), default=float)), {"4": 1.5, "7": 2.5}),
    ("sorted", lambda d: sorted(d, reverse=True), [7, 4]),
    ("reversed", lambda d: list(reversed(d)), [7, 4]),
    ("update another", lambda d: _updated(d), {4: 1.5, 7: 2.5}),
    ("repr", lambda d: eval(repr(d), {"np": np}), {4: 1.5, 7: 2.5}),
]


def _updated(by_env: Any) -> dict[int, Any]:
    out: dict[int, Any] = {}
    out.update(by_env)
    return out


@pytest.mark.parametrize(("name", "read", "wanted"), BY_ENV, ids=[b[0] for b in BY_ENV])
def test_by_env_reads_like_a_dict(name: str, read: Any, wanted: Any) -> None:
    assert read(ByEnv(np.array([4, 7]), np.array([1.5, 2.5]))) == wanted


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__(7, 9.0),
        lambda d: d.__delitem__(4),
        lambda d: d.pop(4),
        lambda d: d.popitem(),
        lambda d: d.update({4: 3.0, 9: 1.0}),
        lambda d: d.setdefault(9, 1.0),
        lambda d: d.__ior__({9: 1.0}),
    ],
)
def test_changes_of_by_env_count(change: Any) -> None:
    by_env, reference = ByEnv(np.array([4, 7]), np.array([1.5, 2.5])), {4: 1.5, 7: 2.5}
    change(by_env)
    change(reference)
    ids, values = stacked_of(by_env)
    assert dict(zip(ids.tolist(), values.tolist(), strict=True)) == reference
    assert by_env == reference


def test_changes_inside_of_a_row_count() -> None:
    by_env = ByEnv(np.array([4, 7]), {"action": np.array([1, 2])})
    by_env[7]["action"] = 5
    assert stacked_of(by_env)[1]["action"].tolist() == [1, 5]
    obs = ByEnv(np.array([4, 7]), np.zeros((2, 3)))
    obs[4][:] = 6
    assert stacked_of(obs)[1].tolist() == [[6, 6, 6], [0, 0, 0]]


def test_stacked_of_costs_nothing_untouched() -> None:
    stacked = np.zeros((2, 3))
    by_env = ByEnv(np.array([4, 7]), stacked)
    assert stacked_of(by_env)[1] is stacked
    ids, values = stacked_of({3: {"a": 1.0}, 1: {"a": 2.0}})
    assert ids.tolist() == [3, 1]
    assert values["a"].dtype == np.float32


# --- stack, take, concat -------------------------------------------------------------------------

LEAF = st.one_of(
    st.integers(-5, 5),
    st.booleans(),
    st.lists(st.integers(-9, 9), min_size=2, max_size=2).map(np.array),
)
TREE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=5,
)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return np.array_equal(np.asarray(a), np.asarray(b))


@settings(max_examples=60, deadline=None)
@given(TREE, st.integers(1, 5), st.integers(1, 5))
def test_stack_take_concat_unstack_agree(tree: Any, n: int, m: int) -> None:
    rows = [tree] * n
    stacked = stack(rows)
    assert length(stacked) == n
    assert all(same(take(stacked, i), tree) for i in range(n))
    assert all(same(row, tree) for row in unstack(stacked))
    both = concat([stacked, stack([tree] * m)])
    assert length(both) == n + m
    assert same(take(both, slice(n, n + m)), stack([tree] * m))
    assert length(take(both, np.arange(n + m) % 2 == 0)) == (n + m + 1) // 2


def test_what_does_not_stack_is_kept_as_objects() -> None:
    column = stack([np.zeros(2), np.zeros(3)])
    assert column.dtype == object
    assert column[1].shape == (3,)
    assert stack(["a", "bc"]).tolist() == ["a", "bc"]
    assert stack([None, None]).tolist() == [None, None]
    assert [row["s"] for row in Rows(stack([{"s": "a"}, {"s": "b"}]))] == ["a", "b"]


def test_rows_with_other_keys_are_refused() -> None:
    with pytest.raises(ValueError, match=r"row 0 has \['a'\], row 1 has \['b'\]"):
        stack([{"a": 1}, {"b": 1}])
    with pytest.raises(ValueError, match="row 1 has int"):
        stack([{"a": 1}, 3])


def test_tensors_stack_to_numpy() -> None:
    stacked = stack([{"x": torch.ones(2, requires_grad=True)}, {"x": torch.zeros(2)}])
    assert stacked["x"].tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert isinstance(stacked["x"], np.ndarray)
