"""Directories that users name."""

from __future__ import annotations

import os
from pathlib import Path

from ding.utils.errors import DingError


def check_can_write(directory: str | Path, option: str) -> None:
    """Refuse a directory that cannot be made or written to; `option` is what named it."""
    path = Path(directory).absolute()
    there = next(place for place in (path, *path.parents) if place.exists())
    if not there.is_dir():
        raise DingError(f"{option} {directory}: '{there}' is a file, not a directory")
    if not os.access(there, os.W_OK):
        raise DingError(f"{option} {directory}: '{there}' cannot be written to")
