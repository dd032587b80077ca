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
from typing import Any, Literal, NoReturn

from ding.config.merge import merge
from ding.config.schema import REQUIRED, Leaf, Schema, Section
from ding.config.text import PlainData
from ding.utils.checkpoint import whole_file
from ding.utils.checksum import with_checksum, without_checksum
from ding.utils.errors import ConfigError

_FORM: Schema = {
    "": Section(),
    "version": Leaf(REQUIRED, Literal[1], "the form that this ding reads"),
    "main_config": Leaf(REQUIRED, dict),
    "create_config": Leaf(REQUIRED, dict),
    "system_config": Leaf(REQUIRED, dict),
    "seed": Leaf(REQUIRED, int),
}
# Far more than any config needs, little enough to be looked through in seconds.
_MOST_BYTES = 16 * 2**20
_MOST_VALUES = 10**5
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
    plain = _checked({"version": 1, **data}, f"'{path}'")
    raw = pickle.dumps(plain, protocol=4)
    if len(raw) > _MOST_BYTES:
        raise ConfigError(
            f"{path}: the config takes {len(raw)} bytes, {_MOST_BYTES} at most; name large data "
            "by the path of its file"
        )
    with whole_file(path) as file:
        file.write(with_checksum(raw))


def load_pickled(path: str | Path) -> dict[str, Any]:
    """`main_config`, `create_config`, `system_config` and `seed` of a file; runs nothing in it."""
    path = Path(path)
    raw = _read(path)
    try:
        raw = without_checksum(raw)
        _look_through(raw, path)
        content = _PlainUnpickler(BytesIO(raw)).load()
    except ConfigError:
        raise
    except Exception as error:  # A foreign file can break the reader in any way.
        raise ConfigError(
            f"'{path}' is damaged, cut short or no config at all ({error}); {_AGAIN}"
        ) from error
    plain = _checked(content, f"'{path}' is no config of a distributed run", f"; {_AGAIN}")
    del plain["version"]
    return plain


def _checked(content: Any, prefix: str, suffix: str = "") -> dict[str, Any]:
    """The content as plain data of the right form."""
    try:
        return merge(_FORM, PlainData((str, int), _MOST_VALUES).of(content))
    except ConfigError as error:
        raise ConfigError(f"{prefix}: {error}{suffix}") from error


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


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise ConfigError(f"there is no config '{path}'; {_AGAIN}")
    with path.open("rb") as file:
        raw = file.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ConfigError(f"'{path}' is larger than {_MOST_BYTES} bytes: no config; {_AGAIN}")
    return raw
