"""The page about reward models: its configs train, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs/reward_models.md"


def test_the_page_runs(tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(block, space)
    for name in ("novel_dqn", "visits_dqn"):
        assert (tmp_path / name / "reward_model/ckpt/ckpt_last.pth.tar").is_file()


def test_a_model_of_ones_own_has_thirty_lines() -> None:
    block = PAGE.read_text().split("class Visits")[1].split("```")[0]
    assert len(block.splitlines()) <= 30


@pytest.mark.parametrize("words", re.findall(r"^ding (.*?) *#", PAGE.read_text(), re.M))
def test_commands_find_their_configs(words: str) -> None:
    from ding.entry.cli import _configs, parser

    main, _, _ = _configs(parser().parse_args(words.split()))
    assert main["reward_model"]["type"] == "rnd"
