"""Which classes a run is made of: those named in create_config, passed in, or the usual ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ding.config.schema import Leaf, Schema, schema_of
from ding.config.tree import MISSING, lookup, plain_dict
from ding.utils.errors import ConfigError, DingError, nearest
from ding.utils.registry import REGISTRIES, Registry, import_names, policy_name

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
}
"""Part of create_config to the section of main_config that configures it."""
OPTIONAL = ("reward_model",)
"""Parts that a run has only if its config names them."""
NOT_YET = {"world_model": "world models"}
"""Parts that established configs may name and that are not built yet."""

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
    refuse_parts_not_built(create, "create_config.")
    for part, section in create.items():
        if part not in PLACES:
            raise ConfigError(f"unknown create_config key '{part}'{nearest(part, PLACES)}")
        if not isinstance(section, dict):
            raise ConfigError(f"create_config.{part} must be a dict(type=...), got {section!r}")
    for part in PLACES:
        _take_type(create, part, main)
    _settle_optional(create, main)
    if "policy" in create and isinstance(create["policy"].get("type"), str):
        several = lookup(main, "policy.multi_agent")
        given = None if several is MISSING else several
        create["policy"]["type"] = policy_name(create["policy"], given)
    return create


def _settle_optional(create: dict[str, Any], main: dict[str, Any]) -> None:
    """An empty section counts as none; one with settings needs a type."""
    for part in OPTIONAL:
        if not main.get(part):
            main.pop(part, None)
        elif part not in create:
            known = ", ".join(_registry_of(part).query())
            raise ConfigError(f"config key '{part}.type' is missing; one of: {known}")


def refuse_parts_not_built(given: dict[str, Any], where: str = "") -> None:
    """Refuse parts that nothing would read; empty ones are taken out."""
    for part, name in NOT_YET.items():
        if given.pop(part, None):
            raise ConfigError(
                f"config section '{where}{part}': {name} are not built yet, so nothing would read "
                "it; leave it out"
            )


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
    if "policy" not in classes:
        classes["policy"] = _class_of("policy", create, None, auto)
    declared = schema_of(classes["policy"])
    for part in PLACES:
        if part not in classes and (part not in OPTIONAL or part in create):
            classes[part] = _class_of(part, create, _usual(part, main, declared), auto)
    return classes


def _class_of(part: str, create: dict[str, Any], usual: str | None, auto: bool) -> Any:
    if auto:
        section = create.setdefault(part, {})
        section.setdefault("type", usual)
        return class_named(part, section)
    if create.get(part, {}).get("type") in _registry_of(part):
        return class_named(part, create[part])
    return _registry_of(part).get(usual) if usual and part != "env" else None


def class_named(part: str, section: dict[str, Any]) -> Any:
    """The class that `{type, import_names}` names; unneeded import names are dropped from it."""
    name = section.get("type")
    if not isinstance(name, str):
        raise ConfigError(f"create_config names no {part} type; write for example {EXAMPLE}")
    registry = _registry_of(part)
    if "import_names" in section:
        section["import_names"] = _imported(section["import_names"] or [], part, name, registry)
    return registry.get(name)


def types_with(section: str, key: str) -> list[str]:
    """Registered types of the part that a section configures which declare this key."""
    part = next((part for part, place in PLACES.items() if place == section), None)
    registry = None if part is None else _registry_of(part)
    names = [] if registry is None else registry.query()
    return [name for name in names if key in _keys_of(registry, name)]


def _keys_of(registry: Any, name: str) -> Iterable[str]:
    try:
        return schema_of(registry.get(name))
    except ImportError:  # it needs a package that is not installed
        return ()


def _registry_of(part: str) -> Registry:
    return REGISTRIES[_REGISTRY_NAMES.get(part, part)]


def _usual(part: str, main: dict[str, Any], policy: Schema) -> str | None:
    """The type of a part that nobody names."""
    if part == "collector":
        return "episode" if _wants_episodes(main, policy) else "sample"
    if part == "replay_buffer":  # the one that the policy's defaults name, or its relative
        name = _default_of(policy, "other.replay_buffer.type") or _USUAL[part]
        priority = lookup(main, "policy.priority")
        priority = _default_of(policy, "priority") if priority is MISSING else priority
        return _PRIORITISED.get(name, name) if priority is True else name
    return _USUAL.get(part)


def _wants_episodes(main: dict[str, Any], policy: Schema) -> bool:
    """Whether data are counted in episodes: as the user says, or else by the policy's defaults."""
    counts = ("n_sample", "n_episode")
    user = {
        key
        for key in counts
        for path in (f"policy.collect.{key}", f"policy.{key}")
        if lookup(main, path) not in (MISSING, None)
    }
    settled = user or {key for key in counts if _default_of(policy, f"collect.{key}")}
    return settled == {"n_episode"}


def _default_of(policy: Schema, path: str) -> Any:
    leaf = policy.get(path)
    return leaf.default if isinstance(leaf, Leaf) and leaf.has_default else None


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
