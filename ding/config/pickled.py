"""Configs as pickles of plain data: what is more than that is neither written nor read.

Pickles can run code while they are loaded. That is why a file is looked through first, instruction
by instruction: only those that make plain data may be in it.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

from ding.config.hints import plain_scalar
from ding.utils.checkpoint import whole_file
from ding.utils.errors import ConfigError

_VERSION = 1
_SECTIONS = ("main_config", "create_config", "system_config")
_KEYS = ("version", *_SECTIONS, "seed")
_ATOMS = (str, int, float, bool, type(None))
# Far more than any config needs, little enough to be looked through in seconds.
_MOST_BYTES = 16 * 2**20
_MOST_VALUES = 10**5
_DEEPEST = 100
_INSTRUCTIONS = {
    *("PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINGET", "LONG_BINGET"),
    *("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
}
_AGAIN = "write it again with: ding -m dist --module config -c CONFIG.py"


def save_pickled(path: str | Path, data: Mapping[str, Any]) -> None:
    """Write `main_config`, `create_config`, `system_config` and `seed`, all of them or nothing."""
    path = Path(path)
    plain = _Plain(path).of({"version": _VERSION, **data})
    if fault := _fault(plain):
        raise ConfigError(f"{path}: {fault}")
    raw = pickle.dumps(plain, protocol=4)
    if len(raw) > _MOST_BYTES:
        raise ConfigError(
            f"{path}: the config takes {len(raw)} bytes, {_MOST_BYTES} at most; name large data "
            "by the path of its file"
        )
    with whole_file(path) as file:
        file.write(raw)


def load_pickled(path: str | Path) -> dict[str, Any]:
    """`main_config`, `create_config`, `system_config` and `seed` of a file; runs nothing in it."""
    path = Path(path)
    raw = _read(path)
    try:
        _look_through(raw, path)
        content = _PlainUnpickler(BytesIO(raw)).load()
    except ConfigError:
        raise
    except Exception as error:  # A foreign file can break the reader in any way.
        raise ConfigError(
            f"'{path}' is damaged, cut short or no config at all ({error}); {_AGAIN}"
        ) from error
    plain = _Plain(path).of(content)
    if fault := _fault(plain):
        raise ConfigError(f"'{path}' is no config of a distributed run: {fault}; {_AGAIN}")
    del plain["version"]
    return plain


class _PlainUnpickler(pickle.Unpickler):
    """The second guard, should an instruction have been overlooked."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise ConfigError(f"names code ({module}.{name}) and is refused; no code was run")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise ConfigError("refers to something outside of the file and is refused")


def _look_through(raw: bytes, path: Path) -> None:
    end = -1
    for instruction, _, position in pickletools.genops(raw):
        if instruction.name not in _INSTRUCTIONS:
            raise ConfigError(
                f"'{path}' carries more than plain data ({instruction.name} at byte {position}) "
                f"and is refused; no code in it was run. If you know who made it: {_AGAIN}"
            )
        end = position or 0
    if end + 1 != len(raw):
        raise ValueError(f"{len(raw) - end - 1} bytes follow its end")


class _Plain:
    """Makes plain data of the content of a file, and errors of what is none."""

    def __init__(self, path: Path) -> None:
        self._path, self._values = path, 0

    def of(self, value: Any, key: str = "", depth: int = 0) -> Any:
        self._values += 1
        if depth > _DEEPEST:
            self._refuse(key, f"is nested deeper than {_DEEPEST} levels, or in itself")
        if self._values > _MOST_VALUES:
            self._refuse(key, f"is one value too many; {_MOST_VALUES} are the most")
        if isinstance(value, Mapping):
            return {
                self._key(k, key): self.of(v, f"{key}.{k}" if key else str(k), depth + 1)
                for k, v in value.items()
            }
        if type(value) in (list, tuple):
            return type(value)(self.of(v, f"{key}[{i}]", depth + 1) for i, v in enumerate(value))
        value = plain_scalar(value)
        if type(value) not in _ATOMS:
            self._refuse(key, f"is a {type(value).__name__}, no plain data; {_fix(value)}")
        return value

    def _key(self, key: Any, parent: str) -> str | int:
        key = plain_scalar(key)
        if type(key) not in (str, int):
            self._refuse(f"{parent}.{key}", "must be a string or a whole number")
        return key

    def _refuse(self, key: str, why: str) -> NoReturn:
        raise ConfigError(f"'{self._path}': config key '{key[:200]}' {why}")


def _fix(value: Any) -> str:
    if not callable(value):
        return "use numbers, strings, lists and dicts"
    name = getattr(value, "__qualname__", type(value).__name__)
    return (
        f"name it by a string, like '{getattr(value, '__module__', 'module')}:{name}', or register "
        "it in a module that create_config names under import_names"
    )


def _fault(content: Any) -> str:
    """What is wrong with the form of a config; nothing if it is right."""
    if not isinstance(content, dict):
        return f"it holds a {type(content).__name__}, not a dict"
    if content.get("version") != _VERSION:
        return f"version = {content.get('version')!r}: this ding reads version {_VERSION}"
    if missing := [key for key in _KEYS if key not in content]:
        return f"{', '.join(missing)} is missing"
    if unknown := [str(key) for key in content if key not in _KEYS]:
        return f"unknown key {', '.join(unknown)}; valid: {', '.join(_KEYS)}"
    for key in _SECTIONS:
        if not isinstance(content[key], dict):
            return f"{key} must be a dict, got {type(content[key]).__name__}"
    if type(content["seed"]) is not int:
        return f"seed = {content['seed']!r}: must be a whole number"
    return ""


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise ConfigError(f"there is no config '{path}'; {_AGAIN}")
    with path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ConfigError(f"'{path}' is larger than {_MOST_BYTES} bytes: no config; {_AGAIN}")
    return raw
