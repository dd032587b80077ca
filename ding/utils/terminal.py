"""Text in a terminal: lines that fit its width, and a panel that is drawn again and again.

While a panel is shown the cursor rests at its top left: what others write overwrites the panel
and is not erased, and whoever makes the window narrower leaves no old rows behind.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Sequence

ERASE = "\r\x1b[J"
"""Erases the panel, or whatever is below the cursor."""
_BACK_UP = re.compile(r"(\x1b\[\d+A)?\r$")
_INDENT = "  "
_STDERR = 2


def terminal_size() -> os.terminal_size:
    """Columns and lines of the terminal that messages go to, even if results are piped."""
    if not {"COLUMNS", "LINES"} & set(os.environ):
        try:
            return os.get_terminal_size(_STDERR)
        except OSError:
            pass
    return shutil.get_terminal_size()


def wrapped(text: str) -> str:
    """Lines no longer than those of the terminal, with paths whole."""
    width = terminal_size().columns - 1
    lines = [
        textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    ]
    return "\n".join(part for line in lines for part in line or [""])


def flowed(parts: Iterable[str], width: int) -> list[str]:
    """Lines of at most so many columns, all parts one after the other; the first is whole."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(_INDENT) + len(part) <= width:
            lines[-1] += _INDENT + part
        else:
            lines.append((_INDENT if lines else "") + part)
    return [line[:width] for line in lines]


def panel(lines: Sequence[str]) -> str:
    """What draws these lines in place of the panel before them."""
    up = f"\x1b[{len(lines) - 1}A" if len(lines) > 1 else ""
    return ERASE + "\n".join(lines) + up + "\r"


def lines_of_panel(text: str) -> list[str]:
    """The lines that `panel` was made of; none if the text is something else."""
    if not (text.startswith(ERASE) and text.endswith("\r")) or text == ERASE:
        return []
    return _BACK_UP.sub("", text.removeprefix(ERASE)).split("\n")
