"""Errors that a user can act on; the command line shows them without a traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class DingError(Exception):
    """Something the user can mend; the message says what, where and how."""


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
    close = get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; valid: {', '.join(names)}" if 0 < len(names) <= 40 else ""
