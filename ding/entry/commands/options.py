"""Types of options, and what several commands need."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


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


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
