from __future__ import annotations

import copy
import pickle

import pytest

from ding.config import explain, override
from ding.config.explain import compiled, create_config_of, origins_of
from ding.config.merge import Origin
from ding.utils.errors import ConfigError

ORIGINS = {
    "a.size": Origin("default", "Net", "Width."),
    "a.deep.x": Origin("user"),
}
CFG = compiled({"a": {"size": 64, "deep": {"x": 1}, "e": {}}}, ORIGINS, {"p": {"type": "t"}})


def test_a_value_is_explained_on_one_line() -> None:
    assert explain(CFG, "a.size") == "64 (default of Net): Width."
    assert explain(CFG, "a.deep.x") == "1 (user)"
    assert explain({"b": 2}, "b") == "2"


def test_a_section_is_explained_value_by_value() -> None:
    lines = explain(CFG, "a").splitlines()
    assert lines == ["a.size = 64 (default of Net): Width.", "a.deep.x = 1 (user)", "a.e = {}"]
    assert explain(CFG) == explain(CFG, "a")


def test_an_unknown_path_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no config key 'size'; did you mean 'a.size'\?"):
        explain(CFG, "size")
    with pytest.raises(ConfigError, match=r"did you mean 'a.deep.x'\?"):
        explain(CFG, "a.dep.x")


def test_what_is_remembered_is_no_item_and_survives_copies() -> None:
    assert list(CFG) == ["a"]
    for cfg in (copy.copy(CFG), copy.deepcopy(CFG), pickle.loads(pickle.dumps(CFG))):
        assert cfg == CFG and cfg.a.deep.x == 1
        assert origins_of(cfg) == ORIGINS and create_config_of(cfg) == {"p": {"type": "t"}}
    changed = copy.deepcopy(CFG)
    changed.a.deep.x = 5
    assert CFG.a.deep.x == 1 and changed["a"]["deep"]["x"] == 5


def test_override_copies_and_remembers_the_source() -> None:
    main = {"a": {"b": 1}}
    cfg = override(main, {"a.b": 2, "c.d": 3})
    assert cfg == {"a": {"b": 2}, "c": {"d": 3}} and main == {"a": {"b": 1}}
    assert explain(cfg, "c.d") == "3 (command line)"
