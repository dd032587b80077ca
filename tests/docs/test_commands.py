"""docs/commands.md: every line in it parses, and every command is in it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ding.entry import cli_demo
from ding.entry.commands.table import COMMANDS, parser_of
from ding.entry.overrides import parsed

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
BLOCKS = re.findall(r"```\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]


@pytest.mark.parametrize("line", [*LINES, *(c.example for c in COMMANDS.values())])
def test_line_parses(line: str) -> None:
    ding, name, *words = shlex.split(line)
    assert ding == "ding"
    if name == cli_demo.WORD:
        cli_demo.parser().parse_args(words)
        return
    args = parser_of(name).parse_intermixed_args(words)
    if name == "train":
        parsed(word for word in args.words if "=" in word)


def test_every_command_has_a_line() -> None:
    assert {line.split()[1] for line in LINES} == {*COMMANDS, cli_demo.WORD}
