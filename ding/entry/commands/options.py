"""Types of options, and what several commands need."""

from __future__ import annotations

import argparse
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ding.utils.errors import DingError, nearest


def count(text: str) -> int:
    """A positive whole number that may be written like 1e5."""
    value = _number(text)
    if not (value >= 1 and value.is_integer()):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive whole number (like 1e5)")
    return int(value)


def whole(text: str) -> int:
    """A whole number from 0 on."""
    value = _number(text)
    if not (value >= 0 and value.is_integer()):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 on")
    return int(value)


def seconds(text: str) -> float:
    """A positive, finite number."""
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number of seconds")
    return value


def import_from_here() -> None:
    """Find modules of this directory, too: a script does not look there."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def is_place(text: str) -> bool:
    """Whether it has the form module:name."""
    name = text.partition(":")[2]  # no identifier: Gymnasium's own module:id
    return name.isidentifier() and not Path(text).exists()


def object_at(place: str) -> Any:
    """The class or function at module:name."""
    module_name, _, name = place.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise DingError(
            f"'{place}': cannot import '{module_name}': {error}; modules are looked for in this "
            "directory and among the installed ones"
        ) from error
    if not hasattr(module, name):
        own = [k for k, v in vars(module).items() if callable(v) and not k.startswith("_")]
        raise DingError(f"'{place}': {module_name} has no '{name}'{nearest(name, own)}")
    return getattr(module, name)


def videos_of(place: Path) -> Path:
    """Directory for videos of a run, or of one of its checkpoints."""
    if place.is_dir():
        return place / "videos"
    inside_run = place.parent.name == "ckpt"
    return (place.parent.parent if inside_run else place.parent) / "videos"


def number_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def cut(line: str, most: int) -> str:
    """The line, or its beginning that fits."""
    return line if len(line) <= most else line[: most - 3] + "..."


def terminal_width() -> int:
    """Columns of the terminal; without one there is no limit."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10**6


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
