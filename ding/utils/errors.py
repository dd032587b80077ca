"""Errors that a user can act on; the command line shows them without a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LISTED = 60


class DingError(Exception):
    """Something the user can mend; the message says what, where and how."""


class UsageError(DingError):
    """A command line that makes no sense; exit code 2."""


class ConfigError(DingError):
    """A config that cannot be run as it stands."""


class EnvError(DingError, RuntimeError):
    """An env failed; the message says which, where in its code, and what led there."""


class CheckpointError(DingError):
    """A checkpoint that is missing, damaged or does not fit."""


class DemonstrationError(DingError):
    """Demonstrations that are missing, damaged or of another task."""


def nearest(name: object, valid: Iterable[object]) -> str:
    """The tail of an error message: the closest valid name, or else all of them."""
    names = sorted(str(v) for v in valid)
    close = _close(str(name), names)
    if close is not None:
        return f"; did you mean '{close}'?"
    return f"; valid: {', '.join(names)}" if 0 < len(names) <= _MOST_LISTED else ""


def _close(name: str, names: list[str]) -> str | None:
    """A name that differs in case alone, or in few letters: another first one is another name."""
    same = [known for known in names if known.lower() == name.lower()]
    close = [*same, *get_close_matches(name, names, n=5, cutoff=0.6)]
    sure = get_close_matches(name, names, n=1, cutoff=0.75)
    return next((known for known in close if known[:1].lower() == name[:1].lower()), None) or next(
        iter(sure), None
    )
