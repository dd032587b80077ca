"""The page about goals: its env trains with its config."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

PAGE = Path(__file__).parents[2] / "docs/goals.md"


def test_an_env_of_ones_own_learns_with_hindsight(tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(block, space)
    result = json.loads((tmp_path / "dial_her_sac/result.json").read_text())
    assert result["stop"]  # a dial that stands still returns about -28
    gym.registry.pop("Dial-v0")


@pytest.mark.parametrize("words", re.findall(r"^ding (.*?) *#", PAGE.read_text(), re.M))
def test_commands_find_their_configs(words: str) -> None:
    from ding.entry.cli import _configs, parser

    main, create, _ = _configs(parser().parse_args(words.split()))
    assert "her" in main["policy"]["other"] and create["env"]["type"] == words.split()[3]
