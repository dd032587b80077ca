from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ding.config import REQUIRED, Leaf, Node, merge
from ding.config.merge import MISSING, Origin, lookup, put
from ding.utils.errors import ConfigError

from . import fakes

SCHEMA = Node(
    {
        "lr": Leaf(0.1, float, "Step size."),
        "n": Leaf(1, int),
        "name": Leaf("a"),
        "size": Leaf(3),
        "maybe": Leaf(None),
        "eps": Leaf(None, fakes.EpsConfig | None, owner="P"),
        "inner": Node({"shape": Leaf([1])}),
        "extra": Node(open=True, value_hint=int),
        "off": Node({"a": Leaf(1)}, nullable=True),
    }
)


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
        ({"lr": "x"}, "'p.lr' must be float (Step size.), got 'x' (str)"),
        ({"name": 3}, "'p.name' must be a str like 'a', got 3 (int)"),
        ({"size": True}, "'p.size' must be a number like 3, got True (bool)"),
        ({"size": None}, "'p.size' must be a number like 3, got None"),
        ({"inner": [1]}, "'p.inner' must be a dict, got [1] (list)"),
        ({"inner": {"shap": 1}}, "unknown config key 'p.inner.shap' (= 1); did you mean 'shape'?"),
        ({"inner": {"lr": 1}}, "did you mean 'p.lr'?"),
        ({"zzz": "v" * 100}, "(= '" + "v" * 56 + "...); valid: eps, extra, inner, lr"),
        ({3: 1}, "unknown config key 'p.3'"),
        ({"extra": {"a": "b"}}, "'p.extra.a' must be int"),
        ({"extra": {1: 2}}, "config key 1 in 'p.extra' must be a string"),
        ({"eps": {"stat": 1}}, "'p.eps.stat' (= 1); did you mean 'start'?"),
        ({"eps": 3}, "'p.eps' must be dict | None, got 3"),
    ],
)
def test_mistakes_are_named_with_path_value_and_fix(user: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        merge(SCHEMA, user, "p")


def test_missing_required_keys_are_named_with_their_meaning() -> None:
    schema = Node({"a": Node({"path": Leaf(REQUIRED, str, "Where the data are.")})})
    with pytest.raises(ConfigError, match=r"'a.path' is required: Where the data are."):
        merge(schema, {})
    assert merge(schema, {"a": {"path": "x"}}) == {"a": {"path": "x"}}


def test_optional_sections() -> None:
    assert merge(SCHEMA, {"eps": {"start": 1}})["eps"] == {"start": 1.0, "kind": "exp"}
    assert merge(SCHEMA, {"off": None})["off"] is None
    assert merge(SCHEMA, {})["off"] == {"a": 1}


def test_cfg_type_of_saved_configs_is_tolerated_everywhere() -> None:
    user = {"cfg_type": "x", "inner": {"cfg_type": "y"}, "extra": {"cfg_type": "z", "a": 1}}
    got = merge(SCHEMA, user)
    assert "cfg_type" not in got and got["inner"] == {"shape": [1]} and got["extra"] == {"a": 1}


def test_the_users_values_are_copied() -> None:
    user: dict[str, Any] = {"inner": {"shape": [5]}}
    merge(SCHEMA, user)["inner"]["shape"].append(6)
    assert user == {"inner": {"shape": [5]}}


def test_origins_are_collected() -> None:
    origins: dict[str, Origin] = {}
    merge(SCHEMA, {"lr": 1, "extra": {"k": 2}}, source="zoo", origins=origins)
    assert origins["lr"] == Origin("zoo", "", "Step size.") and origins["extra.k"].source == "zoo"
    assert origins["inner.shape"].source == "default"


def test_aliases_move_values_unless_the_old_name_is_declared() -> None:
    aliases = {"inner.lr": "lr", "n": "size", "old": "gone"}
    user: dict[str, Any] = {"inner": {"lr": 0.5}, "n": 7}
    got = merge(SCHEMA, user, aliases=aliases)
    assert (got["lr"], got["n"], got["size"]) == (0.5, 7, 3)
    assert merge(SCHEMA, {"lr": 2, "inner": {"lr": 2}}, aliases=aliases)["lr"] == 2.0
    with pytest.raises(ConfigError, match=r"'inner.lr' \(= 1\) and 'lr' \(= 2\).*keep 'lr'"):
        merge(SCHEMA, {"lr": 2, "inner": {"lr": 1}}, aliases=aliases)
    with pytest.raises(ConfigError, match=r"unknown config key 'old'"):
        merge(SCHEMA, {"old": 1}, aliases=aliases)


def test_lookup_and_put() -> None:
    tree: dict[str, Any] = {"a": {"b": 1}}
    put(tree, "a.c.d", 2)
    assert tree == {"a": {"b": 1, "c": {"d": 2}}} and lookup(tree, "a.c.d") == 2
    assert lookup(tree, "a.b.x") is MISSING and lookup(tree, "z") is MISSING
    with pytest.raises(ConfigError, match=r"must be a dict, got 1"):
        put(tree, "a.b.x", 1)
