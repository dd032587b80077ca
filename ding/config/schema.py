"""What a component may be configured with: its declared defaults as one small tree.

A class declares its defaults once, as `config_class` (a frozen dataclass: typed, documented by the
string below each field) or as `config` (a plain dict: checked by example). A subclass states only
what differs. `config_open` names sections that take keys nobody declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from easydict import EasyDict

from ding.config.docs import comment_docs, field_docs
from ding.config.hints import Misfit, arms_of, describe, fit, fits
from ding.utils.errors import ConfigError

T = TypeVar("T")


class _Sentinel:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __deepcopy__(self, memo: dict[int, Any]) -> _Sentinel:
        return self


REQUIRED: Any = _Sentinel("REQUIRED")
"""Default of a key that the user must set."""
ABSENT: Any = _Sentinel("ABSENT")
"""Default of a key that is allowed, and left out unless the user sets it."""


def is_sentinel(value: Any) -> bool:
    return isinstance(value, _Sentinel)


@dataclass(frozen=True)
class Leaf:
    """One value."""

    default: Any
    hint: Any = None
    """Its type; None: the default serves as an example."""
    doc: str = ""
    owner: str = ""
    """Name of the class that declares the default."""


@dataclass(frozen=True)
class Node:
    """A section."""

    children: dict[str, Leaf | Node] = field(default_factory=dict)
    open: bool = False
    """Keys that nobody declared are accepted."""
    value_hint: Any = Any
    """The type of those."""
    nullable: bool = False


Schema: TypeAlias = Leaf | Node


def schema_of(cls: Any) -> Node:
    """What a class and its bases declare, the nearest winning; open if that is nothing."""
    tree: Node | None = None
    typed = _nearest_config_class(cls)
    for base in reversed(getattr(cls, "__mro__", ())):
        own = vars(base)
        parts = [dataclass_node(own["config_class"], base.__name__)] if base is typed else []
        if isinstance(own.get("config"), Mapping) and own["config"]:  # empty says nothing
            docs = comment_docs(base)
            parts.append(example_node(own["config"], base.__name__, docs))
        for part in parts:
            tree = part if tree is None else overlay(tree, part)
        for path in own.get("config_open", ()):
            tree = changed(tree or Node(), path, opened)
    return tree if tree is not None else Node(open=True)


def dataclass_node(cls: Any, owner: str, instance: Any = None) -> Node:
    """The fields of a dataclass; `instance` brings defaults other than the fields' own."""
    hints, docs = get_type_hints(cls), field_docs(cls)
    children = {
        f.name: _field_schema(
            hints[f.name],
            Leaf(_default_of(f, instance), hints[f.name], docs.get(f.name, ""), owner),
        )
        for f in fields(cls)
        if f.init
    }
    return Node(children)


def example_node(
    defaults: Mapping[str, Any], owner: str, docs: Mapping[str, str] | None = None, path: str = ""
) -> Node:
    """A dict of defaults; an empty one says nothing, so it is open. `docs` are by dotted path."""
    docs = docs or {}
    children: dict[str, Leaf | Node] = {}
    for key, value in defaults.items():
        if isinstance(value, Mapping):
            children[key] = example_node(value, owner, docs, f"{path}{key}.")
        elif key != "cfg_type":
            children[key] = Leaf(value, None, docs.get(path + key, ""), owner)
    return Node(children, open=not children)


def overlay(base: Schema, over: Schema) -> Any:
    """`over` on top of `base`: its defaults win, hints and docs of `base` stay."""
    if isinstance(base, Node) and isinstance(over, Node):
        children = dict(base.children)
        for key, child in over.children.items():
            children[key] = overlay(children[key], child) if key in children else child
        is_open = base.open or (over.open and bool(over.children))
        return replace(base, children=children, open=is_open)
    if isinstance(base, Leaf) and isinstance(over, Leaf):
        has_value = over.default is not None and not is_sentinel(over.default)
        keeps_hint = over.hint is None and (not has_value or fits(over.default, base.hint))
        hint = base.hint if keeps_hint else over.hint
        return replace(over, hint=hint, doc=over.doc or base.doc)
    return over


def under(own: Node, template: Node) -> Node:
    """`own` with what only `template` declares; own's defaults stand, and what it leaves open."""
    children = dict(own.children)
    for key, below in template.children.items():
        above = children.get(key)
        if isinstance(above, Node) and isinstance(below, Node):
            children[key] = under(above, below)
        elif above is not None:
            children[key] = overlay(below, above)
        elif isinstance(below, Node):
            children[key] = replace(below, open=below.open or own.open)
        else:
            children[key] = below
    return replace(own, children=children)


def changed(node: Node, path: str, change: Callable[[Node], Node]) -> Node:
    """The same tree with another section at the dotted path."""
    if not path:
        return change(node)
    head, _, rest = path.partition(".")
    child = node.children.get(head)
    inner = changed(child if isinstance(child, Node) else Node(), rest, change)
    return replace(node, children=node.children | {head: inner})


def opened(node: Node) -> Node:
    return replace(node, open=True)


def find(schema: Schema, path: str) -> Schema | None:
    """What is declared at a dotted path."""
    for key in path.split(".") if path else ():
        if not isinstance(schema, Node) or key not in schema.children:
            return None
        schema = schema.children[key]
    return schema


def leaves(schema: Schema, path: str = "") -> Iterator[tuple[str, Leaf]]:
    if isinstance(schema, Leaf):
        yield path, schema
        return
    for key, child in schema.children.items():
        yield from leaves(child, f"{path}.{key}" if path else key)


def defaults_of(schema: Node) -> dict[str, Any]:
    """The declared defaults; keys without one are left out."""
    out: dict[str, Any] = {}
    for key, child in schema.children.items():
        if isinstance(child, Node):
            out[key] = defaults_of(child)
        elif not is_sentinel(child.default):
            out[key] = deepcopy(child.default)
    return out


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
    return _build(config_class, mapping, path, None)


def _build(config_class: type[T], mapping: Mapping[str, Any], path: str, base: T | None) -> T:
    hints = get_type_hints(config_class)
    given: dict[str, Any] = {}
    for f in fields(config_class):  # type: ignore[arg-type]
        where = f"{path}.{f.name}" if path else f.name
        default = _default_of(f, base)
        if f.init and f.name in mapping:
            given[f.name] = _build_value(mapping[f.name], hints[f.name], where, default)
        elif default is REQUIRED and f.init:
            raise ConfigError(f"config key '{where}' is required{_tail(config_class, f.name)}")
    try:
        return config_class(**given) if base is None else replace(base, **given)  # type: ignore[type-var]
    except ValueError as error:
        raise ConfigError(f"config section '{path}': {error}" if path else str(error)) from error


def _build_value(value: Any, hint: Any, path: str, default: Any) -> Any:
    nested = dataclass_arm(hint)
    if nested is not None and isinstance(value, Mapping):
        base = default if is_dataclass(default) else None
        return _build(type(base) if base is not None else nested, value, path, base)
    try:
        return fit(value, hint)
    except Misfit:
        raise misfit_error(path, value, describe(hint)) from None


def misfit_error(path: str, value: Any, expected: str) -> ConfigError:
    kind = "" if value is None else f" ({type(value).__name__})"
    return ConfigError(f"config key '{path}' must be {expected}, got {value!r}{kind}")


def dataclass_arm(hint: Any) -> Any:
    """The dataclass that a hint names, alone or beside None."""
    return next((arm for arm in arms_of(hint) if isinstance(arm, type) and is_dataclass(arm)), None)


def _tail(cls: type, name: str) -> str:
    doc = field_docs(cls).get(name)
    return f": {doc}" if doc else ""


def _nearest_config_class(cls: Any) -> Any:
    mro = getattr(cls, "__mro__", ())
    return next((base for base in mro if is_dataclass(vars(base).get("config_class"))), None)


def _default_of(f: Field[Any], instance: Any) -> Any:
    if instance is not None:
        return getattr(instance, f.name)
    if f.default_factory is not MISSING:
        return f.default_factory()
    return REQUIRED if f.default is MISSING else f.default


def _field_schema(hint: Any, leaf: Leaf) -> Schema:
    nullable = type(None) in arms_of(hint)
    nested = dataclass_arm(hint)
    if nested is not None and leaf.default is not None:
        instance = leaf.default if is_dataclass(leaf.default) else None
        node = dataclass_node(type(instance) if instance else nested, leaf.owner, instance)
        return replace(node, nullable=nullable)
    if isinstance(leaf.default, Mapping):
        args = next((get_args(arm) for arm in arms_of(hint) if get_origin(arm) is dict), ())
        node = opened(example_node(leaf.default, leaf.owner))
        return replace(node, nullable=nullable, value_hint=args[1] if args else Any)
    return leaf
