"""Schema: the settings that components declare, as a table by dotted path.

A class declares its defaults once, as `config_class` (a frozen dataclass: typed, documented by the
string below each field) or as `config` (a plain dict: checked by example). A subclass states only
what differs. `config_open` names sections that take keys nobody declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from enum import Enum, auto
from typing import Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from easydict import EasyDict

from ding.config.docs import comment_docs, field_docs
from ding.config.tree import MISSING, join, lookup, misfit_error, put, section
from ding.config.values import Misfit, arms_of, describe, describe_like, fit, fits, hint_like
from ding.utils.errors import ConfigError

T = TypeVar("T")


class _NoDefault(Enum):
    REQUIRED = auto()
    ABSENT = auto()


REQUIRED: Any = _NoDefault.REQUIRED
"""Default of a key that the user must set."""
ABSENT: Any = _NoDefault.ABSENT
"""Default of a key that is allowed, and left out unless the user sets it."""


@dataclass(frozen=True)
class Leaf:
    """One value."""

    default: Any
    hint: Any = None
    """Its type; None: the default serves as an example."""
    doc: str = ""
    owner: str = ""
    """Name of the class that declares the default."""

    @property
    def has_default(self) -> bool:
        return not isinstance(self.default, _NoDefault)


@dataclass(frozen=True)
class Section:
    """A dict of values and sections."""

    open: bool | None = False
    """Keys that nobody declared are accepted; None: too, since the dict of defaults is empty."""
    nullable: bool = False


Schema: TypeAlias = dict[str, Leaf | Section]
"""Dotted path to what is declared there; the whole is at ''."""


def schema_of(cls: Any) -> Schema:
    """What a class and its bases declare, the nearest winning; open if that is nothing."""
    schema: Schema = {}
    mro: tuple[type, ...] = getattr(cls, "__mro__", ())
    typed = next((base for base in mro if is_dataclass(vars(base).get("config_class"))), None)
    for base in reversed(mro):
        own = vars(base)
        if base is typed:
            _overlay(schema, dict(dataclass_entries(own["config_class"], base.__name__)))
        if isinstance(own.get("config"), Mapping) and own["config"]:  # empty says nothing
            docs = comment_docs(base)
            _overlay(schema, dict(_example_entries(own["config"], base.__name__, docs)))
        for path in own.get("config_open", ()):
            schema[path] = Section(open=True)
    return schema or {"": Section(open=True)}


def dataclass_entries(
    cls: Any, owner: str, instance: Any = None, path: str = "", nullable: bool = False
) -> Iterator[tuple[str, Leaf | Section]]:
    """The fields of a dataclass; `instance` brings defaults other than the fields' own."""
    yield path, Section(nullable=nullable)
    hints, docs = get_type_hints(cls), field_docs(cls)
    for f in fields(cls):
        if f.init:
            default = _default_of(f) if instance is None else getattr(instance, f.name)
            leaf = Leaf(default, hints[f.name], docs.get(f.name, ""), owner)
            yield from _field_entries(leaf, join(path, f.name))


def _field_entries(leaf: Leaf, path: str) -> Iterator[tuple[str, Leaf | Section]]:
    arms, nested = arms_of(leaf.hint), dataclass_arm(leaf.hint)
    if nested is not None and leaf.default is not None:
        instance = leaf.default if is_dataclass(leaf.default) else None
        cls = nested if instance is None else type(instance)
        yield from dataclass_entries(cls, leaf.owner, instance, path, type(None) in arms)
    elif isinstance(leaf.default, Mapping) and not any(map(_is_typed_dict, arms)):
        yield from _example_entries(leaf.default, leaf.owner, {}, path)
        yield path, Section(open=True, nullable=type(None) in arms)
    else:
        yield path, leaf


def _example_entries(
    defaults: Mapping[str, Any], owner: str, docs: Mapping[str, str], path: str = ""
) -> Iterator[tuple[str, Leaf | Section]]:
    """A dict of defaults."""
    yield path, Section(open=False if defaults else None)
    for key, value in defaults.items():
        where = join(path, key)
        if isinstance(value, Mapping) and not any("." in str(inner) for inner in value):
            yield from _example_entries(value, owner, docs, where)
        elif key != "cfg_type":
            yield where, Leaf(value, None, docs.get(where, ""), owner)


def _overlay(schema: Schema, over: Schema) -> None:
    """Lay `over` on top: its defaults win; types, docs and what is open below it stay."""
    for path, entry in over.items():
        below = schema.get(path)
        if isinstance(below, Section) and isinstance(entry, Section):
            schema[path] = entry if below.open is False and entry.open else below
        elif isinstance(below, Leaf) and isinstance(entry, Leaf):
            schema[path] = _with_hint_of(below, entry)
        else:
            replace_entry(schema, path, entry)


def replace_entry(schema: Schema, path: str, entry: Leaf | Section) -> None:
    """Put an entry in the place of another and of all that is in it."""
    for key in [key for key in schema if key.startswith(f"{path}.")]:
        del schema[key]
    schema[path] = entry


def fill(schema: Schema, declared: Schema, at: str, *, settles_open: bool = True) -> None:
    """Add what is `declared` for the section `at`, below the defaults that are there already.

    `settles_open`: whether its sections are open is as `declared` has it, not as it was.
    """
    for path, entry in declared.items():
        where = join(at, path)
        own = schema.get(where)
        if isinstance(entry, Leaf):
            schema[where] = _with_hint_of(entry, own) if isinstance(own, Leaf) else own or entry
        elif settles_open:
            schema[where] = entry
        elif not isinstance(own, Section):
            parent = schema.get(where.rpartition(".")[0])
            inherits = isinstance(parent, Section) and parent.open is not False
            schema[where] = Section(open=bool(entry.open) or inherits)


def _with_hint_of(below: Leaf, leaf: Leaf) -> Leaf:
    """The type and doc of the leaf below, where the one above is an example of that type."""
    has_value = leaf.default is not None and leaf.has_default
    keeps = leaf.hint is None and (not has_value or fits(leaf.default, below.hint or Any))
    return replace(leaf, hint=below.hint if keeps else leaf.hint, doc=leaf.doc or below.doc)


def checked(leaf: Leaf, value: Any, path: str) -> Any:
    """The value if it fits the leaf; None fits where the default is None."""
    if value is None and leaf.default is None:
        return None
    example = leaf.default if leaf.has_default else None
    try:
        return fit(value, hint_like(example) if leaf.hint is None else leaf.hint)
    except Misfit:
        expected = describe_like(example) if leaf.hint is None else describe(leaf.hint)
        raise misfit_error(path, value, expected + (leaf.doc and f" ({leaf.doc})")) from None


def required_error(path: str, leaf: Leaf) -> ConfigError:
    return ConfigError(f"config key '{path}' is required{leaf.doc and ': ' + leaf.doc}")


def defaults_of(schema: Schema) -> dict[str, Any]:
    """The declared defaults; keys without one are left out."""
    tree: dict[str, Any] = {}
    for path, entry in schema.items():
        if isinstance(entry, Section):
            section(tree, path)
        elif entry.has_default:
            put(tree, path, deepcopy(entry.default))
    return tree


def default_config_of(cls: type) -> EasyDict:
    """What `cls.default_config()` returns: the defaults as an EasyDict of the caller's own."""
    return to_easydict(defaults_of(schema_of(cls)) | {"cfg_type": cls.__name__ + "Dict"})


def to_easydict(mapping: Mapping[str, Any]) -> EasyDict:
    return EasyDict(deepcopy(dict(mapping)))


def deep_merge_dicts(original: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Any:
    """`new` on top of `original`, section by section; a new dict of the type of `original`."""
    merged: Any = deepcopy(original) if original is not None else {}
    for key, value in (new or {}).items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = deep_merge_dicts(merged[key], value) if both else deepcopy(value)
    return merged


def build(config_class: type[T], mapping: Mapping[str, Any], path: str = "") -> T:
    """An instance of the dataclass from (a compiled section of) a config.

    Keys that the dataclass does not have are left out: they belong to subclasses and components.
    """
    schema = dict(dataclass_entries(config_class, ""))
    tree = deep_merge_dicts(defaults_of(schema), mapping)
    for key, entry in schema.items():
        if isinstance(entry, Leaf):
            value = lookup(tree, key)
            if value is MISSING:
                raise required_error(join(path, key), entry)
            put(tree, key, checked(entry, value, join(path, key)))
    try:
        return msgspec.convert(tree, config_class)
    except msgspec.ValidationError as error:  # a ValueError of some `__post_init__`
        message, _, inner = str(error).partition(" - at `$.")
        where = join(path, inner.rstrip("`"))
        raise ConfigError(f"config section '{where}': {message}" if where else message) from error


def dataclass_arm(hint: Any) -> Any:
    """The dataclass that a hint names, alone or beside None."""
    return next((arm for arm in arms_of(hint) if isinstance(arm, type) and is_dataclass(arm)), None)


def _is_typed_dict(hint: Any) -> bool:
    return get_origin(hint) is dict and get_args(hint)[1] is not Any


def _default_of(f: Field[Any]) -> Any:
    if f.default_factory is not NO_DEFAULT:
        return f.default_factory()
    return REQUIRED if f.default is NO_DEFAULT else f.default
