"""The user's values on top of declared defaults, every key and type checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

from ding.config.hints import Misfit, describe, fit, fit_example, plain_scalar
from ding.config.schema import (
    ABSENT,
    REQUIRED,
    Leaf,
    Node,
    dataclass_arm,
    dataclass_node,
    find,
    is_sentinel,
    leaves,
    misfit_error,
)
from ding.utils.errors import ConfigError, nearest

MISSING: Any = object()
TypesWith = Callable[[str, str], Sequence[str]]


class Origin(NamedTuple):
    """Where a value came from."""

    source: str
    owner: str = ""
    doc: str = ""


def merge(
    schema: Node,
    user: Mapping[str, Any],
    path: str = "",
    source: str = "user",
    *,
    aliases: Mapping[str, str] | None = None,
    origins: dict[str, Origin] | None = None,
    types_with: TypesWith | None = None,
) -> dict[str, Any]:
    """The section that `schema` describes with the user's values on top, as a new dict.

    `aliases` maps older spellings to today's, `origins` collects where each value came from,
    `types_with` tells for a section and a key which types of that part would take the key.
    """
    if aliases and isinstance(user, Mapping):
        user = _respelt(schema, user, aliases)
    merging = _Merge(schema, path, source, {} if origins is None else origins, types_with)
    return merging.node(schema, user, path)


@dataclass(frozen=True)
class _Merge:
    root: Node
    root_path: str
    source: str
    origins: dict[str, Origin]
    types_with: TypesWith | None = None

    def node(self, node: Node, user: Any, path: str) -> Any:
        if user is None and node.nullable:
            return self._keep(None, path, Leaf(None))
        if not isinstance(user, Mapping):
            raise misfit_error(path or "config", user, "a dict")
        out: dict[str, Any] = {}
        for key, child in node.children.items():
            value = self.child(child, user.get(key, MISSING), _join(path, key))
            if value is not ABSENT:
                out[key] = value
        for key, value in user.items():
            if key not in node.children and key != "cfg_type":
                out[key] = self._undeclared(node, key, value, path)
        return out

    def child(self, child: Leaf | Node, value: Any, path: str) -> Any:
        if isinstance(child, Node):
            return self.node(child, {} if value is MISSING else value, path)
        nested = dataclass_arm(child.hint)
        if nested is not None and isinstance(value, Mapping):
            return self.node(dataclass_node(nested, child.owner), value, path)
        return self._default(child, path) if value is MISSING else self._given(child, value, path)

    def _default(self, leaf: Leaf, path: str) -> Any:
        if leaf.default is REQUIRED:
            raise ConfigError(f"config key '{path}' is required{leaf.doc and ': ' + leaf.doc}")
        if leaf.default is not ABSENT:
            self.origins[path] = Origin("default", leaf.owner, leaf.doc)
        return deepcopy(leaf.default)

    def _given(self, leaf: Leaf, value: Any, path: str) -> Any:
        return self._keep(checked(leaf, plain_scalar(value), path), path, leaf)

    def _undeclared(self, node: Node, key: Any, value: Any, path: str) -> Any:
        where = _join(path, str(key))
        if not node.open:
            self._refuse_of_other_type(key, value, path)
            raise self._unknown(node, key, value, where)
        if not isinstance(key, str):
            raise ConfigError(f"config key {key!r} in '{path}' must be a string")
        if isinstance(value, Mapping):
            return self.node(Node(open=True), value, where)
        return self._given(Leaf(ABSENT, node.value_hint), value, where)

    def _refuse_of_other_type(self, key: Any, value: Any, path: str) -> None:
        types = self.types_with(path, str(key)) if self.types_with is not None else ()
        if types:
            named = " or ".join(map(repr, types))
            raise ConfigError(
                f"config key '{_join(path, str(key))}' (= {_short(value)}) needs "
                f"'{path}.type' = {named}; the type chosen here has no such key"
            )

    def _unknown(self, node: Node, key: Any, value: Any, path: str) -> ConfigError:
        hint = nearest(key, node.children)
        elsewhere = [p for p, _ in leaves(self.root, self.root_path) if p.endswith(f".{key}")]
        if "did you mean" not in hint and elsewhere:
            hint = f"; did you mean '{elsewhere[0]}'?"
        return ConfigError(f"unknown config key '{path}' (= {_short(value)}){hint}")

    def _keep(self, value: Any, path: str, leaf: Leaf) -> Any:
        self.origins[path] = Origin(self.source, leaf.owner, leaf.doc)
        return deepcopy(value)


def checked(leaf: Leaf, value: Any, path: str) -> Any:
    """The value if it fits the leaf; None fits where the default is None."""
    if value is None and leaf.default is None:
        return None
    example = None if is_sentinel(leaf.default) else leaf.default
    try:
        return fit(value, leaf.hint) if leaf.hint is not None else fit_example(value, example)
    except Misfit:
        expected = describe(leaf.hint) if leaf.hint is not None else _like(example)
        raise misfit_error(path, value, expected + (leaf.doc and f" ({leaf.doc})")) from None


def lookup(tree: Any, path: str) -> Any:
    """The value at a dotted path, or MISSING."""
    for key in path.split("."):
        if not isinstance(tree, Mapping) or key not in tree:
            return MISSING
        tree = tree[key]
    return tree


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a dotted path, making the sections on the way."""
    *sections, key = path.split(".")
    for depth, section in enumerate(sections, start=1):
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise misfit_error(".".join(sections[:depth]), tree, "a dict")
    tree[key] = value


def plain_dict(tree: Any) -> Any:
    """Nested mappings as plain dicts; the other values as they are."""
    if isinstance(tree, Mapping):
        return {key: plain_dict(value) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)(plain_dict(value) for value in tree)
    return tree


def _respelt(schema: Node, user: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    tree = plain_dict(user)
    for old, new in aliases.items():
        value = lookup(tree, old)
        if value is MISSING or find(schema, old) is not None or find(schema, new) is None:
            continue
        today = lookup(tree, new)
        if today is not MISSING and today != value:
            raise ConfigError(
                f"config keys '{old}' (= {_short(value)}) and '{new}' (= {_short(today)}) mean the "
                f"same but differ; keep '{new}'"
            )
        section, _, key = old.rpartition(".")
        (lookup(tree, section) if section else tree).pop(key)
        put(tree, new, value)
    return tree


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _like(example: Any) -> str:
    if example == "auto":
        return "'auto', another name or a number"
    kind = "number" if type(example) in (int, float) else type(example).__name__
    return f"a {kind} like {example!r}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
