"""What config keys mean, read from the source that declares them.

A dataclass field is documented by the string below it, a key of a `config` dict by the comment
above it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise


def field_docs(cls: type) -> dict[str, str]:
    """Field to its doc, for a dataclass and its bases."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        for item, below in pairwise(_source_of(base)[0]):
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                text = below.value if isinstance(below, ast.Expr) else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    docs[item.target.id] = inspect.cleandoc(text.value).replace("\n", " ")
    return docs


def comment_docs(cls: type) -> dict[str, str]:
    """Dotted key of the class's own `config` dict to its doc."""
    body, lines = _source_of(cls)
    for item in body:
        targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "config" for target in targets):
            return dict(_comments_above_keys(getattr(item, "value", None), lines, ""))
    return {}


def _comments_above_keys(
    value: ast.expr | None, lines: list[str], prefix: str
) -> Iterator[tuple[str, str]]:
    for key, line, child in _items(value):
        comment: list[str] = []
        while line >= 2 and lines[line - 2].lstrip().startswith("#"):
            line -= 1
            comment.insert(0, lines[line - 1].strip(" #"))
        if comment:
            yield prefix + key, " ".join(comment)
        yield from _comments_above_keys(child, lines, f"{prefix}{key}.")


def _items(value: ast.expr | None) -> list[tuple[str, int, ast.expr]]:
    """Keys of `dict(...)` or `{...}`, with their lines and values."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict":
        return [(k.arg, k.lineno, k.value) for k in value.keywords if k.arg]
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return [(str(k.value), k.lineno, v) for k, v in pairs if isinstance(k, ast.Constant)]
    return []


def _source_of(cls: type) -> tuple[list[ast.stmt], list[str]]:
    """Statements of a class and lines of its file; none of what has no source."""
    classes, lines = _classes_in(cls.__module__)
    return classes.get(cls.__qualname__, []), lines


@cache
def _classes_in(module_name: str) -> tuple[dict[str, list[ast.stmt]], list[str]]:
    try:
        source = inspect.getsource(sys.modules[module_name])
    except (KeyError, OSError, TypeError):  # typed into a console, or built in
        return {}, []
    return dict(_classes_below(ast.parse(source).body, "")), source.splitlines()


def _classes_below(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, list[ast.stmt]]]:
    for item in body:
        if isinstance(item, ast.ClassDef):
            yield prefix + item.name, item.body
            yield from _classes_below(item.body, f"{prefix}{item.name}.")
        elif isinstance(item, ast.FunctionDef):
            yield from _classes_below(item.body, f"{prefix}{item.name}.<locals>.")
