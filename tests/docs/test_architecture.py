"""The page about the architecture says what the import test allows."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"


def allowed() -> dict[str, set[str]]:
    """`BELOW` of tests/test_imports.py, whose module can't be imported from here."""
    names: dict[str, dict[str, set[str]]] = {}
    text = (ROOT / "tests" / "test_imports.py").read_text()
    source = text[text.index("BELOW") : text.index('"""Package to what it may import')]
    exec(source, names)
    return names["BELOW"]


def test_the_table_is_that_of_the_import_test() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*)\|$", PAGE.read_text(), re.MULTILINE)
    table = {package: set(re.findall(r"`(\w+)`", below)) for package, below in rows}
    assert table == allowed()


def test_every_file_that_the_page_names_is_there() -> None:
    text = PAGE.read_text()
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        path = ROOT / name if name.startswith("tests/") else ROOT / "ding" / name
        assert path.is_file(), name


def test_the_picture_names_every_package_of_the_way() -> None:
    words = "".join(ElementTree.parse(PAGE.with_suffix(".svg")).getroot().itertext())
    for package in ("entry", "pipeline", "parallel", "envs", "model", "rl_utils", "torch_utils"):
        assert package in words
