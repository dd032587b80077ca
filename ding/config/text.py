"""Plain data as Python source that reads back equal, also infinities and tuples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ding.config.tree import short
from ding.config.values import plain_scalar
from ding.utils.errors import ConfigError

_ATOMS = (str, int, float, bool, type(None))
_DEEPEST = 100


class PlainData:
    """Makes plain dicts, lists, tuples and atoms of a tree, and errors of what is none of them."""

    def __init__(self, keys: tuple[type, ...] = (str,), most_values: float = math.inf) -> None:
        self._keys, self._left, self._most = keys, most_values, most_values

    def of(self, value: Any, path: str = "", depth: int = 0) -> Any:
        self._left -= 1
        if depth > _DEEPEST:
            raise _error(path, f"is nested deeper than {_DEEPEST} levels, or in itself")
        if self._left < 0:
            raise _error(path, f"is one value too many; {self._most} are the most")
        if isinstance(value, Mapping):
            return {
                self._key(key, path): self.of(v, f"{path}.{key}" if path else str(key), depth + 1)
                for key, v in value.items()
            }
        if isinstance(value, (list, tuple)):
            items = [self.of(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        value = plain_scalar(value)
        if type(value) not in _ATOMS:
            kind = type(value).__name__
            raise _error(path, f"cannot be saved: {short(value)} ({kind}); {_fix(value, path)}")
        return value

    def _key(self, key: Any, path: str) -> Any:
        key = plain_scalar(key)
        if type(key) not in self._keys:
            kinds = " or a ".join("string" if k is str else "whole number" for k in self._keys)
            raise ConfigError(f"config key {key!r} in '{path}' must be a {kinds}")
        return key


def _error(path: str, reason: str) -> ConfigError:
    return ConfigError(f"config key '{path[:200]}' {reason}")


def _fix(value: Any, path: str) -> str:
    if not callable(value):
        return "use numbers, strings, lists and dicts"
    if path.endswith("activation"):
        return "name it by a string: relu, tanh, gelu, elu, silu, leaky_relu, sigmoid or identity"
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "<>")
    like = "" if "<" in name else f", like '{module}:{name}'"
    return (
        f"name it by a string{like}, or register it in a module that create_config names under "
        "import_names"
    )


def to_python(value: Any, formatted: bool = False, indent: str = "", *, width: int = 0) -> str:
    """Source of plain data: on one line, or formatted one key a line.

    Formatted, a section that fits into `width` stays on one line.
    """
    if isinstance(value, dict) and value:
        flat = "{" + ", ".join(f"{key!r}: {to_python(v)}" for key, v in value.items()) + "}"
        if not formatted or len(indent) + len(flat) <= width:
            return flat
        deeper = indent + "    "
        lines = [
            f"{deeper}{key!r}: {to_python(v, formatted, deeper, width=width)},\n"
            for key, v in value.items()
        ]
        return "{\n" + "".join(lines) + indent + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_items(value, formatted, indent, width)) + "]"
    if isinstance(value, tuple):
        comma = "," if len(value) == 1 else ""
        return "(" + ", ".join(_items(value, formatted, indent, width)) + comma + ")"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def _items(values: Any, formatted: bool, indent: str, width: int) -> Iterator[str]:
    return (to_python(value, formatted, indent, width=width) for value in values)
