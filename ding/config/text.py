"""Plain data as Python source that reads back equal, also infinities and tuples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ding.config.hints import plain_scalar
from ding.utils.errors import ConfigError

_ATOMS = (str, int, float, bool, type(None))


def plain_data(value: Any, path: str = "") -> Any:
    """The same in plain dicts, lists, tuples and atoms; an error for what no file can hold."""
    if isinstance(value, Mapping):
        return {
            _key(key, path): plain_data(v, f"{path}.{key}" if path else key)
            for key, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = [plain_data(v, f"{path}[{i}]") for i, v in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    value = plain_scalar(value)
    if type(value) in _ATOMS:
        return value
    if callable(value):
        name = getattr(value, "__qualname__", type(value).__name__)
        module = getattr(value, "__module__", "module")
        fix = f"give its import path as a string, like '{module}:{name}'"
    else:
        fix = "use numbers, strings, lists and dicts"
    kind = type(value).__name__
    raise ConfigError(f"config key '{path}' cannot be saved: {value!r} ({kind}); {fix}")


def to_python(value: Any, formatted: bool = False, indent: str = "") -> str:
    """Source of plain data: on one line, or formatted one key a line."""
    if isinstance(value, dict) and value:
        deeper = indent + "    "
        items = [f"{key!r}: {to_python(v, formatted, deeper)}" for key, v in value.items()]
        if not formatted:
            return "{" + ", ".join(items) + "}"
        return "{\n" + "".join(f"{deeper}{item},\n" for item in items) + indent + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_items(value, formatted, indent)) + "]"
    if isinstance(value, tuple):
        comma = "," if len(value) == 1 else ""
        return "(" + ", ".join(_items(value, formatted, indent)) + comma + ")"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def _items(values: Any, formatted: bool, indent: str) -> Iterator[str]:
    return (to_python(value, formatted, indent) for value in values)


def _key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"config key {key!r} in '{path}' must be a string")
    return key
