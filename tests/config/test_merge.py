from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ding.config.merge import Origin, merge, respelt
from ding.config.schema import REQUIRED, Leaf, Schema, Section
from ding.config.tree import MISSING, lookup, put
from ding.utils.errors import ConfigError

from . import fakes

SCHEMA: Schema = {
    "": Section(),
    "lr": Leaf(0.1, float, "Step size."),
    "n": Leaf(1, int),
    "name": Leaf("a"),
    "size": Leaf(3),
    "maybe": Leaf(None),
    "eps": Leaf(None, fakes.EpsConfig | None, owner="P"),
    "inner": Section(),
    "inner.shape": Leaf([1]),
    "extra": Section(open=True),
    "counts": Leaf({"a": 1}, dict[str, int]),
    "off": Section(nullable=True),
    "off.a": Leaf(1),
}


def test_defaults_are_filled_in_and_copied() -> None:
    first = merge(SCHEMA, {})
    assert first["inner"] == {"shape": [1]} and first["maybe"] is None and first["eps"] is None
    first["inner"]["shape"].append(2)
    assert merge(SCHEMA, {})["inner"]["shape"] == [1]


def test_values_are_converted() -> None:
    got = merge(SCHEMA, {"lr": 1, "n": 1e3, "size": np.int64(4), "inner": {"shape": (1, 2)}})
    assert (got["lr"], got["n"], got["size"], got["inner"]["shape"]) == (1.0, 1000, 4, (1, 2))
    assert type(got["n"]) is int and type(got["size"]) is int


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"lr": "x"}, "'lr' must be float (Step size.), got 'x' (str)"),
        ({"name": 3}, "'name' must be a str like 'a', got 3 (int)"),
        ({"size": True}, "'size' must be a number like 3, got True (bool)"),
        ({"size": None}, "'size' must be a number like 3, got None"),
        ({"inner": [1]}, "'inner' must be a dict, got [1] (list)"),
        ({"inner": {"shap": 1}}, "unknown config key 'inner.shap' (= 1); did you mean 'shape'?"),
        ({"inner": {"lr": 1}}, "did you mean 'lr'?"),
        ({"zzz": "v" * 100}, "(= '" + "v" * 56 + "...); valid: counts, eps, extra, inner, lr"),
        ({3: 1}, "unknown config key '3'"),
        ({"counts": {"a": "b"}}, "'counts' must be dict[str, int], got {'a': 'b'} (dict)"),
        ({"extra": {1: 2}}, "config key 1 in 'extra' must be a string"),
        ({"eps": {"stat": 1}}, "'eps.stat' (= 1); did you mean 'start'?"),
        ({"eps": 3}, "'eps' must be dict | None, got 3"),
    ],
)
def test_mistakes_are_named_with_path_value_and_fix(user: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        merge(SCHEMA, user)


def test_missing_required_keys_are_named_with_their_meaning() -> None:
    schema: Schema = {
        "": Section(),
        "a": Section(),
        "a.path": Leaf(REQUIRED, str, "Where the data are."),
    }
    with pytest.raises(ConfigError, match=r"'a.path' is required: Where the data are."):
        merge(schema, {})
    assert merge(schema, {"a": {"path": "x"}}) == {"a": {"path": "x"}}


def test_optional_sections() -> None:
    assert merge(SCHEMA, {"eps": {"start": 1}})["eps"] == {"start": 1.0, "kind": "exp"}
    assert merge(SCHEMA, {"eps": None})["eps"] is None
    assert merge(SCHEMA, {"off": None})["off"] is None
    assert merge(SCHEMA, {})["off"] == {"a": 1}


def test_cfg_type_of_saved_configs_is_tolerated_everywhere() -> None:
    user = {"cfg_type": "x", "inner": {"cfg_type": "y"}, "extra": {"cfg_type": "z", "a": 1}}
    got = merge(SCHEMA, user)
    assert "cfg_type" not in got and got["inner"] == {"shape": [1]} and got["extra"] == {"a": 1}


def test_keys_with_dots_are_no_paths() -> None:
    with pytest.raises(ConfigError, match=r"unknown config key 'inner.shape' \(= 1\)"):
        merge(SCHEMA, {"inner.shape": 1})
    assert merge(SCHEMA, {"extra": {"a.b": 1}})["extra"] == {"a.b": 1}


def test_the_users_values_are_copied() -> None:
    user: dict[str, Any] = {"inner": {"shape": [5]}}
    merge(SCHEMA, user)["inner"]["shape"].append(6)
    assert user == {"inner": {"shape": [5]}}


def test_origins_are_collected() -> None:
    origins: dict[str, Origin] = {}
    user = {"lr": 1, "extra": {"k": 2, "deep": {"x": np.int64(1)}}}
    tree = merge(SCHEMA, user, source_of=lambda path: f"zoo {path}", origins=origins)
    assert origins["lr"] == Origin("zoo lr", "", "Step size.")
    assert origins["extra.k"].source == "zoo extra.k"
    assert origins["extra.deep"].source == "zoo extra.deep"
    assert type(tree["extra"]["deep"]["x"]) is int
    assert origins["inner.shape"].source == "default"


def test_aliases_move_values_unless_the_old_name_is_declared() -> None:
    aliases = {"inner.lr": "lr", "n": "size", "old": "gone"}
    user: dict[str, Any] = {"inner": {"lr": 0.5}, "n": 7}
    got = respelt(SCHEMA, user, aliases)
    assert got == {"inner": {}, "lr": 0.5, "n": 7} and user == {"inner": {"lr": 0.5}, "n": 7}
    assert respelt(SCHEMA, {"lr": 2, "inner": {"lr": 2}}, aliases) == {"lr": 2, "inner": {}}
    with pytest.raises(ConfigError, match=r"'inner.lr' \(= 1\) and 'lr' \(= 2\).*keep 'lr'"):
        respelt(SCHEMA, {"lr": 2, "inner": {"lr": 1}}, aliases)
    assert respelt(SCHEMA, {"old": 1}, aliases) == {"old": 1}  # no 'gone' to move it to


def test_lookup_and_put() -> None:
    tree: dict[str, Any] = {"a": {"b": 1}}
    put(tree, "a.c.d", 2)
    assert tree == {"a": {"b": 1, "c": {"d": 2}}} and lookup(tree, "a.c.d") == 2
    assert lookup(tree, "a.b.x") is MISSING and lookup(tree, "z") is MISSING
    with pytest.raises(ConfigError, match=r"must be a dict, got 1"):
        put(tree, "a.b.x", 1)
