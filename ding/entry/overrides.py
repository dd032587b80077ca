"""Overrides: config keys by dotted path, from the command line or as arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from ding.config import deep_merge_dicts, override
from ding.config.parts import PLACES
from ding.utils.errors import UsageError

_SECTIONS = ("env", "policy", "reward_model")
_TOP = ("exp_name", "checkpoint_seconds", "callbacks")
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "inf": float("inf"),
    "-inf": -float("inf"),
}


def absolute(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides by their path from the top; those that name no section are of the policy."""
    given: dict[str, Any] = {}
    for path, value in overrides.items():
        top = path in _TOP or path.split(".")[0] in _SECTIONS
        given[path if top else f"policy.{path}"] = value
    return given


def with_overrides(
    main: Any, create: Any, overrides: Mapping[str, Any], source: str
) -> tuple[Any, Any]:
    """main_config and create_config with values from the top set; types win over create_config."""
    parts = {f"{place}.type": part for part, place in PLACES.items()}
    create = deep_merge_dicts({}, create)
    for path, value in overrides.items():
        if path in parts:
            create[parts[path]] = {**create.get(parts[path], {}), "type": value}
    return override(main, overrides, source), create


def parsed(words: Iterable[str]) -> dict[str, Any]:
    """Values of `KEY=VALUE` words."""
    given: dict[str, Any] = {}
    for word in words:
        path, _, text = word.partition("=")
        if not path or any(not part for part in path.split(".")):
            raise UsageError(f"'{word}': an override is KEY=VALUE, like learn.batch_size=64")
        if path in given:
            raise UsageError(f"'{path}' is given twice: {given[path]!r} and {text}")
        if path == "seed":
            raise UsageError(f"'{word}': the seed has options of its own: --seed {text}")
        given[path] = _value(text)
    return given


def _value(text: str) -> Any:
    """A Python literal; true, false, null and inf as in YAML; anything else is a string."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
