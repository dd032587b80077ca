from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from easydict import EasyDict

from ding.config import REQUIRED, deep_merge_dicts, default_config_of, to_easydict
from ding.config.schema import Leaf, Section, build, defaults_of, schema_of
from ding.utils.errors import ConfigError

from . import fakes


@dataclass(frozen=True, kw_only=True)
class NeedyConfig:
    path: str
    """Where the data are."""
    eps: fakes.EpsConfig | None = None


def leaf(cls: Any, path: str) -> Leaf:
    found = schema_of(cls).get(path)
    assert isinstance(found, Leaf)
    return found


def test_a_dataclass_is_typed_and_documented() -> None:
    batch_size = leaf(fakes.TypedPolicy, "learn.batch_size")
    assert batch_size == Leaf(64, int, "Samples per update.", "TypedPolicy")
    assert leaf(fakes.TypedPolicy, "nstep").doc == "Steps of real reward in a target."
    assert leaf(fakes.TypedPolicy, "other.eps.start").default == 0.5  # of the default instance


def test_sections_of_a_dataclass_are_closed_but_for_dicts() -> None:
    schema = schema_of(fakes.TypedPolicy)
    assert schema["model"] == Section(open=True) and schema["learn"] == Section(open=False)


def test_a_dict_in_a_subclass_changes_defaults_and_keeps_types() -> None:
    batch_size = leaf(fakes.UserPolicy, "learn.batch_size")
    assert (batch_size.default, batch_size.hint, batch_size.owner) == (16, int, "UserPolicy")
    assert batch_size.doc == "Samples per update."
    assert leaf(fakes.UserPolicy, "learn.rho") == Leaf(0.1, owner="UserPolicy")
    assert leaf(fakes.UserPolicy, "nstep").owner == "TypedPolicy"


def test_a_default_of_another_type_is_an_example_of_its_own() -> None:
    class Renamed(fakes.TypedPolicy):
        config: ClassVar[dict[str, Any]] = {"nstep": "auto", "learn": {"clip": None}}

    assert leaf(Renamed, "nstep").hint is None
    assert leaf(Renamed, "learn.clip").hint == float | None


def test_the_nearest_config_class_replaces_the_one_above() -> None:
    class Other(fakes.TypedPolicy):
        config_class = NeedyConfig  # type: ignore[assignment]

    assert set(schema_of(Other)) == {"", "path", "eps"}
    assert leaf(Other, "path").default is REQUIRED


def test_dicts_of_base_classes_are_merged() -> None:
    assert defaults_of(schema_of(fakes.EpisodeCollector)) == {
        "collect_print_freq": 100,
        "get_train_sample": False,
    }


def test_what_declares_nothing_is_open() -> None:
    for nothing in (fakes.OpenEnv, None, lambda cfg: cfg):
        assert schema_of(nothing) == {"": Section(open=True)}


def test_config_open_names_sections_that_take_more() -> None:
    schema = schema_of(fakes.Learner)
    assert schema["hook"] == Section(open=True) and schema[""] == Section(open=False)
    assert "hook.save_ckpt_after_iter" in schema


def test_default_config_is_a_copy_of_ones_own() -> None:
    cfg = default_config_of(fakes.Learner)
    assert isinstance(cfg.hook, EasyDict) and cfg.cfg_type == "LearnerDict"
    cfg.hook.save_ckpt_after_iter = 1
    assert fakes.Learner.config["hook"] == {"save_ckpt_after_iter": 10000}
    assert "path" not in default_config_of(type("P", (), {"config_class": NeedyConfig}))


def test_build_makes_nested_dataclasses_and_leaves_foreign_keys_out() -> None:
    mapping = EasyDict(learn={"betas": [0, 1], "batch_size": 1e2, "rho": 3}, my_key=1, cfg_type="x")
    cfg = build(fakes.PolicyConfig, mapping)
    assert cfg.learn == fakes.LearnConfig(betas=(0.0, 1.0), batch_size=100)
    assert cfg.other.eps.start == 0.5 and cfg.collect is not None


def test_build_starts_from_the_default_instance_of_a_section() -> None:
    cfg = build(fakes.PolicyConfig, {"other": {"eps": {"kind": "linear"}}})
    assert cfg.other.eps == fakes.EpsConfig(start=0.5, kind="linear")
    needy = build(NeedyConfig, {"path": "x", "eps": {"start": 1}})
    assert needy.eps == fakes.EpsConfig(start=1.0)


def test_build_names_what_is_wrong() -> None:
    with pytest.raises(
        ConfigError, match=r"'policy.learn.batch_size' must be int \(Samples per update.\), got 'a'"
    ):
        build(fakes.PolicyConfig, {"learn": {"batch_size": "a"}}, "policy")
    with pytest.raises(ConfigError, match=r"'path' is required: Where the data are."):
        build(NeedyConfig, {})
    with pytest.raises(ConfigError, match=r"'policy': nstep must be at least 1, got 0"):
        build(fakes.PolicyConfig, {"nstep": 0}, "policy")


def test_deep_merge_dicts_takes_new_keys_and_changes_neither() -> None:
    first, second = {"a": {"b": 1, "c": [1]}, "d": 1}, {"a": {"b": 2, "n": 3}, "d": {"e": 1}}
    merged = deep_merge_dicts(first, second)
    assert merged == {"a": {"b": 2, "c": [1], "n": 3}, "d": {"e": 1}}
    merged["a"]["c"].append(2)
    assert first == {"a": {"b": 1, "c": [1]}, "d": 1}
    assert deep_merge_dicts(None, None) == {}
    assert isinstance(deep_merge_dicts(EasyDict(a=1), {"b": {}}), EasyDict)


def test_to_easydict_copies() -> None:
    tree = {"a": {"b": [1]}}
    cfg = to_easydict(tree)
    cfg.a.b.append(2)
    assert tree == {"a": {"b": [1]}}


def test_an_empty_dict_of_a_base_class_says_nothing() -> None:
    class Base:
        config: ClassVar[dict[str, Any]] = {}

    class Sub(Base):
        config: ClassVar[dict[str, Any]] = {"a": 1}

    assert schema_of(Base)[""] == Section(open=True)
    assert schema_of(Sub)[""] == Section(open=False)


def test_a_dict_whose_keys_hold_dots_is_one_value() -> None:
    class Dotted:
        config: ClassVar[dict[str, Any]] = {"rates": {"net.bias": 0.1}}

    assert default_config_of(Dotted).rates == {"net.bias": 0.1}
    assert schema_of(Dotted)["rates"] == Leaf({"net.bias": 0.1}, owner="Dotted")
