"""The page about several agents: its code runs as it stands, and what it says holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ding.utils import ENV_REGISTRY, MIXER_REGISTRY

PAGE = Path(__file__).parents[2] / "docs" / "multi_agent.md"


@pytest.fixture(autouse=True)
def _own_names() -> Iterator[None]:
    yield
    for registry, name in ((ENV_REGISTRY, "meet"), (MIXER_REGISTRY, "weighted_sum")):
        registry._table.pop(name, None)


def test_the_snippets_run_one_after_the_other(directory: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(snippets) == 4
    names: dict[str, Any] = {}
    for code in snippets:
        exec(compile(code, str(PAGE), "exec"), names)
    assert json.loads((directory / "meet_qmix" / "result.json").read_text())["stop"]
    assert (directory / "meet_weighted" / "result.json").is_file()
    env, mixer = snippets[0].split("class Meet:")[1], snippets[3].split("@MIXER")[1]
    own_env, own_mixer = env.split("@ENV")[0], mixer.split("main_config")[0]
    lines = [[line for line in part.split("\n") if line] for part in (own_env, own_mixer)]
    assert len(lines[0]) <= 20 and len(lines[1]) <= 15
