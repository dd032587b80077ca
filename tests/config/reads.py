"""Where the library reads config keys: found in the source, declarations not counted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
CONFIG_NAMES = frozenset({"cfg", "_cfg", "config", "merged"})
"""Variables that hold the config of a component, whatever section that is."""
_PEEKS = ("get", "pop")
_CHECKS = re.compile(r"_*(check|post_init)")


class Read(NamedTuple):
    """`holder.key`, `holder["key"]`, `holder.get("key")`, `getattr(holder, "key")`."""

    holder: str
    key: str


def modules_below(*packages: str) -> list[str]:
    files = (file for package in packages for file in (ROOT / package).rglob("*.py"))
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


def modules_of(cls: type, packages: tuple[str, ...]) -> set[str]:
    """Modules of a class and its bases, and what these import of the packages."""
    todo = [base.__module__ for base in cls.__mro__]
    found: set[str] = set()
    while todo:
        module = todo.pop()
        if module not in found and _file(module).is_file():
            found.add(module)
            todo += [name for name in _imports(module) if name.startswith(packages)]
    return found


def reads_in(modules: Iterable[str]) -> set[Read]:
    return {read for module in modules for read in _reads(module)}


@cache
def _reads(module: str) -> frozenset[Read]:
    tree = _tree(module)
    aliases = {new: old for node in ast.walk(tree) for new, old in _aliases(node)}
    found = set()
    for node in _acting_nodes(tree):
        for holder, key in (*_peeks(node), *_whole_sections(node)):
            found |= {Read(name, key) for name in (_name(holder), aliases.get(_name(holder), ""))}
    return frozenset(found)


def _acting_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All but the checks: to look whether a value is valid is not to act upon it."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and _CHECKS.match(child.name)):
            yield child
            yield from _acting_nodes(child)


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    """`learn` for `self.cfg.learn` after `learn = self.cfg.learn`."""
    match node:
        case ast.Assign(targets=[ast.Name(id=new)], value=value):
            yield new, _name(value)
        case ast.Assign(targets=[ast.Tuple(elts=new)], value=ast.Tuple(elts=old)) if len(
            new
        ) == len(old):
            yield from ((_name(one), _name(other)) for one, other in zip(new, old, strict=True))
        case _:
            pass


def _peeks(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Attribute(value=holder, attr=key, ctx=ast.Load()):
            yield holder, key
        case ast.Subscript(value=holder, slice=ast.Constant(value=str(key)), ctx=ast.Load()):
            yield holder, key
        case ast.Call(
            func=ast.Attribute(value=holder, attr=name), args=[ast.Constant(str(key)), *_]
        ):
            if name in _PEEKS:
                yield holder, key
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value=str(key)), *_]):
            yield holder, key
        case ast.Compare(left=ast.Name(id="key"), comparators=[ast.Constant(value=str(key))]):
            yield ast.Name(id="key"), key  # walking through a section: `if key == "freq": ...`
        case _:
            pass


def _whole_sections(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """`f(**cfg.section)`, `dict(cfg.section)`: somebody else reads whatever is in it."""
    match node:
        case ast.keyword(arg=None, value=section):
            yield section, "*"
        case ast.Call(func=ast.Name(id="dict"), args=[section]):
            yield section, "*"
        case _:
            pass


def _name(node: Any) -> str:
    """The last name in an expression: `learn` of `self.cfg.learn` and of `cfg["learn"]`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(value=str(name)), *_]):
            return name if method in _PEEKS else method
        case ast.BoolOp(values=[first, *_]):
            return _name(first)
        case _:
            return ""


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text())


@cache
def _imports(module: str) -> frozenset[str]:
    names = set()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {node.module} | {name for name in inner if _file(name).is_file()}
    return frozenset(names)


def _file(module: str) -> Path:
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
