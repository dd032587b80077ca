"""The user's values on top of declared defaults, every key and type checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from ding.config.parts import types_with
from ding.config.schema import (
    ABSENT,
    REQUIRED,
    Leaf,
    Schema,
    Section,
    checked,
    dataclass_arm,
    dataclass_entries,
    replace_entry,
    required_error,
)
from ding.config.tree import MISSING, join, lookup, misfit_error, plain_dict, put, section, short
from ding.config.values import plain_scalar
from ding.utils.errors import ConfigError, nearest

_ELSEWHERE_CALLED = {
    "buffer_size": "other.replay_buffer.replay_buffer_size",
    "clip_range": "learn.clip_ratio",
    "ent_coef": "learn.entropy_weight",
    "gamma": "discount_factor",
    "gradient_steps": "learn.update_per_collect",
    "learning_starts": "random_collect_size",
    "lr": "learn.learning_rate",
    "max_grad_norm": "learn.grad_clip_value",
    "n_epochs": "learn.epoch_per_collect",
    "n_steps": "collect.n_sample",
    "normalize_advantage": "learn.adv_norm",
    "target_update_interval": "learn.target_update_freq",
    "tau": "learn.target_theta",
    "train_freq": "collect.n_sample",
    "vf_coef": "learn.value_weight",
}
"""Names of the same settings in other libraries, to the path in the policy section."""


class Origin(NamedTuple):
    """Where a value came from."""

    source: str
    owner: str = ""
    doc: str = ""


def merge(
    schema: Schema,
    user: Mapping[str, Any],
    *,
    origins: dict[str, Origin] | None = None,
    source_of: Callable[[str], str] = lambda path: "user",
) -> dict[str, Any]:
    """Merge the user's values into the defaults of `schema`, as a new dict.

    `origins` collects where each value came from, `source_of` names who set the one at a path.
    """
    merging = _Merge(dict(schema), {} if origins is None else origins, source_of)
    merging.take(user)
    return merging.tree()


@dataclass(frozen=True)
class _Merge:
    schema: Schema
    """Own copy: optional sections that the user turns on are added to it."""
    origins: dict[str, Origin]
    source_of: Callable[[str], str]
    given: dict[str, Any] = field(default_factory=dict)
    undeclared: list[tuple[str, str, Any]] = field(default_factory=list)
    """Section, key and value of what open sections took; the key may hold a dot."""

    def take(self, user: Any, path: str = "") -> None:
        """Check a section of the user's and note its values."""
        if not isinstance(user, Mapping):
            raise misfit_error(path or "config", user, "a dict")
        for key, value in user.items():
            where = join(path, str(key))
            entry = None if "." in str(key) else self.schema.get(where)
            if entry is None:
                if key != "cfg_type":
                    self._take_undeclared(key, value, path)
            elif value is None and isinstance(entry, Section) and entry.nullable:
                replace_entry(self.schema, where, Leaf(None))
                self.given[where] = None
            elif isinstance(entry, Section) or self._turned_on(entry, value, where):
                self.take(value, where)
            elif value is not None or entry.default is not REQUIRED:
                self.given[where] = checked(entry, plain_scalar(value), where)

    def tree(self) -> dict[str, Any]:
        """Given values and defaults, nested, in the order of the schema."""
        tree: dict[str, Any] = {}
        for path, entry in self.schema.items():
            if isinstance(entry, Section):
                section(tree, path)
            elif path in self.given:
                self.origins[path] = Origin(self.source_of(path), entry.owner, entry.doc)
                put(tree, path, deepcopy(self.given[path]))
            elif entry.default is REQUIRED:
                raise required_error(path, entry)
            elif entry.default is not ABSENT:
                self.origins[path] = Origin("default", entry.owner, entry.doc)
                put(tree, path, deepcopy(entry.default))
        for parent, key, value in self.undeclared:
            self.origins[join(parent, key)] = Origin(self.source_of(join(parent, key)))
            section(tree, parent)[key] = deepcopy(value)
        return tree

    def _turned_on(self, leaf: Leaf, value: Any, path: str) -> bool:
        """Whether the user gives a section that is None by default."""
        nested = dataclass_arm(leaf.hint) if isinstance(value, Mapping) else None
        if nested is not None:
            self.schema.update(dataclass_entries(nested, leaf.owner, path=path))
        return nested is not None

    def _take_undeclared(self, key: Any, value: Any, path: str) -> None:
        parent = self.schema[path]
        if isinstance(parent, Section) and parent.open is False:
            raise self._unknown(key, value, path)
        self.undeclared.append((path, *_plain_item(key, value, path)))

    def _unknown(self, key: Any, value: Any, path: str) -> ConfigError:
        where = join(path, str(key))
        if types := types_with(path, str(key)):
            return ConfigError(
                f"config key '{where}' (= {short(value)}) needs '{path}.type' = "
                f"{' or '.join(map(repr, types))}; the type chosen here has no such key"
            )
        siblings = {p.rpartition(".")[2] for p in self.schema if p and p.rpartition(".")[0] == path}
        declared = [p for p, entry in self.schema.items() if isinstance(entry, Leaf)]
        hint = _hint(str(key), siblings, declared)
        return ConfigError(f"unknown config key '{where}' (= {short(value)}){hint}")


def _hint(key: str, siblings: set[str], declared: list[str]) -> str:
    """The same setting by its name elsewhere, a near name beside it, or one in another section."""
    known = f"policy.{_ELSEWHERE_CALLED.get(key)}"
    hint = nearest(key, siblings)
    if known not in declared and "did you mean" in hint:
        return hint
    names = get_close_matches(key, {p.rpartition(".")[2] for p in declared}, 1, 0.8)
    others = [p for p in declared if f".{p}".endswith(f".{key}")]
    others += [p for p in declared if p.rpartition(".")[2] in names]
    found = [known] if known in declared else others
    return f"; did you mean '{found[0]}'?" if found else hint


def _plain_item(key: Any, value: Any, path: str) -> tuple[str, Any]:
    """Key and value with plain dicts and numbers inside, for keys that nobody declared."""
    if not isinstance(key, str):
        raise ConfigError(f"config key {key!r} in '{path}' must be a string")
    if isinstance(value, Mapping):
        where = join(path, key)
        items = [item for item in value.items() if item[0] != "cfg_type"]
        return key, dict(_plain_item(inner, v, where) for inner, v in items)
    return key, plain_scalar(value)


def respelt(schema: Schema, user: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """The user's values with older spellings replaced, unless the schema declares those."""
    tree: dict[str, Any] = plain_dict(user)
    for old, new in aliases.items():
        value = lookup(tree, old)
        if value is MISSING or old in schema or new not in schema:
            continue
        today = lookup(tree, new)
        if today is not MISSING and today != value:
            raise ConfigError(
                f"config keys '{old}' (= {short(value)}) and '{new}' (= {short(today)}) mean the "
                f"same but differ; keep '{new}'"
            )
        parent, _, key = old.rpartition(".")
        section(tree, parent).pop(key)
        put(tree, new, value)
    return tree
