"""docs/commands.md: every line in it parses, and every command is in it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ding.entry import cli, cli_demo
from ding.entry.commands.table import COMMANDS, parser_of
from ding.entry.overrides import parsed
from ding.utils.registry import REGISTRIES

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


def lines_of_pages() -> list[str]:
    """Every command line in a block of any page, without its comment."""
    found: list[str] = []
    for page in [PAGE.parents[1] / "README.md", *sorted(PAGE.parent.glob("*.md"))]:
        for block in re.findall(r"^```(?:sh)?\n(.*?)^```$", page.read_text(), re.M | re.S):
            found += re.findall(r"^ding (.*?)(?: +#.*| &)?$", block, re.M)
    return sorted({line for line in found if line != "-h"})


@pytest.mark.parametrize("line", lines_of_pages())
def test_line_of_a_page_parses(line: str) -> None:
    words = shlex.split(line)
    if words[0] == "-q":
        assert words[1] in REGISTRIES
    elif words[0].startswith("-"):
        cli._check_options(cli.parser().parse_args(words))
    elif words[0] == cli_demo.WORD:
        cli_demo.parser().parse_args(words[1:])
    else:
        parser_of(words[0]).parse_intermixed_args(words[1:])


def test_every_command_has_a_line() -> None:
    assert {line.split()[1] for line in LINES} == {*COMMANDS, cli_demo.WORD}
