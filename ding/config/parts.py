"""Which classes a run is made of: those named in create_config, passed in, or the usual ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ding.config.merge import MISSING, lookup, plain_dict
from ding.config.schema import Leaf, find, schema_of
from ding.utils.errors import ConfigError, DingError, nearest
from ding.utils.registry import REGISTRIES, Registry, import_names

logger = logging.getLogger(__name__)

PLACES = {
    "env": "env",
    "env_manager": "env.manager",
    "policy": "policy",
    "learner": "policy.learn.learner",
    "collector": "policy.collect.collector",
    "evaluator": "policy.eval.evaluator",
    "replay_buffer": "policy.other.replay_buffer",
    "commander": "policy.other.commander",
    "reward_model": "reward_model",
    "world_model": "world_model",
}
"""Part of create_config to the section of main_config that configures it."""

EXAMPLE = (
    "create_config = dict(env=dict(type='cartpole'), env_manager=dict(type='base'), "
    "policy=dict(type='dqn'))"
)
_USUAL = {
    "env": "ding_env_wrapper_generated",
    "env_manager": "base",
    "learner": "base",
    "evaluator": "interaction",
    "replay_buffer": "naive",
    "commander": "base",
}
_PRIORITISED = {"naive": "advanced", "sequence": "advanced_sequence"}
_REGISTRY_NAMES = {"replay_buffer": "buffer"}


def checked_create_config(create_cfg: Mapping[str, Any] | None, main: Any) -> dict[str, Any]:
    """`{part: {type, ...}}` of create_config and of the `type` keys in main_config."""
    create = plain_dict(create_cfg or {})
    if not isinstance(create, dict):
        raise ConfigError(f"create_config must be a dict, got {create_cfg!r}; write {EXAMPLE}")
    create.pop("cfg_type", None)
    for part, section in create.items():
        if part not in PLACES:
            raise ConfigError(f"unknown create_config key '{part}'{nearest(part, PLACES)}")
        if not isinstance(section, dict):
            raise ConfigError(f"create_config.{part} must be a dict(type=...), got {section!r}")
    for part in PLACES:
        _take_type(create, part, main)
    if "policy" in create and isinstance(create["policy"].get("type"), str):
        # Older configs name the exploring twin of a policy; here exploration is an argument.
        create["policy"]["type"] = create["policy"]["type"].removesuffix("_command")
    return create


def _take_type(create: dict[str, Any], part: str, main: Any) -> None:
    own = lookup(main, f"{PLACES[part]}.type")
    if own is MISSING or not own:
        return
    section = create.setdefault(part, {})
    named = section.setdefault("type", own)
    if _base_name(named) != _base_name(own):
        raise ConfigError(
            f"config key '{PLACES[part]}.type' (= {own!r}) and create_config.{part}.type "
            f"(= {named!r}) differ; keep the one in create_config"
        )
    names = lookup(main, f"{PLACES[part]}.import_names")
    if names is not MISSING and names is not None:
        section.setdefault("import_names", names)


def _base_name(name: Any) -> Any:
    return name.removesuffix("_command") if isinstance(name, str) else name


def classes_of(
    passed: dict[str, Any], create: dict[str, Any], main: dict[str, Any], auto: bool
) -> dict[str, Any]:
    """Class of every part (None: anything goes). With `auto`, `create` is completed on the way."""
    classes = {part: cls for part, cls in passed.items() if cls is not None}
    wants_episodes = False
    for part in ("policy", *PLACES):
        if part in classes:
            continue
        usual = _usual(part, main, wants_episodes)
        if part == "replay_buffer":
            usual = _usual_buffer(main, classes["policy"])
        if auto and (usual or part in create or part == "policy"):
            section = create.setdefault(part, {})
            section.setdefault("type", usual)
            classes[part] = class_named(part, section)
        elif not auto:
            classes[part] = _class_or_usual(part, create.get(part, {}), usual)
        if part == "policy":
            wants_episodes = _wants_episodes(main, classes[part])
    return classes


def _usual(part: str, main: dict[str, Any], wants_episodes: bool) -> str | None:
    if part == "collector":
        return "episode" if wants_episodes else "sample"
    return _USUAL.get(part)


def _usual_buffer(main: dict[str, Any], policy: Any) -> str:
    """The one that the policy's defaults name, or its relative that knows priorities."""
    declared = find(schema_of(policy), "other.replay_buffer.type")
    named = declared.default if isinstance(declared, Leaf) else None
    name = named if isinstance(named, str) and named else _USUAL["replay_buffer"]
    priority = lookup(main, "policy.priority")
    if priority is MISSING:
        leaf = find(schema_of(policy), "priority")
        priority = leaf.default if isinstance(leaf, Leaf) else False
    return _PRIORITISED.get(name, name) if priority is True else name


def _class_or_usual(part: str, section: dict[str, Any], usual: str | None) -> Any:
    registry = REGISTRIES.get(_REGISTRY_NAMES.get(part, part))
    if registry is not None and section.get("type") in registry:
        return class_named(part, section)
    return registry.get(usual) if registry is not None and usual and part != "env" else None


def class_named(part: str, section: dict[str, Any]) -> Any:
    """The class that `{type, import_names}` names; unneeded import names are dropped from it."""
    name = section.get("type")
    if not isinstance(name, str):
        raise ConfigError(f"create_config names no {part} type; write for example {EXAMPLE}")
    registry = REGISTRIES.get(_REGISTRY_NAMES.get(part, part))
    if registry is None:
        return None
    if "import_names" in section:
        section["import_names"] = _imported(section["import_names"] or [], part, name, registry)
    return registry.get(name)


def types_with(section: str, key: str) -> list[str]:
    """Registered types of the part that a section configures which declare this key."""
    part = next((part for part, place in PLACES.items() if place == section), "")
    registry = REGISTRIES.get(_REGISTRY_NAMES.get(part, part))
    names = [] if registry is None else registry.query()
    return [name for name in names if key in _keys_of(registry, name)]


def _keys_of(registry: Any, name: str) -> Iterable[str]:
    try:
        return schema_of(registry.get(name)).children
    except ImportError:  # it needs a package that is not installed
        return ()


def _wants_episodes(main: dict[str, Any], policy: Any) -> bool:
    """Whether data are counted in episodes: as the user says, or else by the policy's defaults."""
    schema = schema_of(policy)
    declared = {key: find(schema, f"collect.{key}") for key in ("n_sample", "n_episode")}
    defaults = {key for key, leaf in declared.items() if isinstance(leaf, Leaf) and leaf.default}
    user = {
        key
        for key in declared
        for path in (f"policy.collect.{key}", f"policy.{key}")
        if lookup(main, path) not in (MISSING, None)
    }
    return "n_sample" not in (user or defaults) and "n_episode" in (user or defaults)


def _imported(names: str | Iterable[str], part: str, type_: str, registry: Registry) -> list[str]:
    known = type_ in registry
    imported = []
    for name in [names] if isinstance(names, str) else names:
        try:
            import_names([name], where=f"create_config.{part}.import_names")
        except DingError as error:
            # Older configs import modules of parts that are built in today; those need no import.
            absent = getattr(error.__cause__, "name", None) or ""
            if not known or not (name == absent or name.startswith(f"{absent}.")):
                raise
            logger.info("%s '%s' is built in; '%s' was not imported", part, type_, name)
        else:
            imported.append(name)
    return imported
