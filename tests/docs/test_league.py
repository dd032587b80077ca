"""The page about games: its own game is learned by self-play and in a league."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ding.config.schema import schema_of
from ding.utils.registry import ENV_REGISTRY
from ding.worker.battle import BattleEpisodeCollector

PAGE = (Path(__file__).parents[2] / "docs/league.md").read_text(encoding="utf-8")


def test_a_game_of_ones_own_is_learned(tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    try:
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S):
            exec(block, space)
    finally:
        ENV_REGISTRY._table.pop("nim")
    # Whoever leaves a multiple of four wins: of nine sticks one, then what makes four.
    for sticks, best in ((9, 0), (7, 2), (6, 1), (5, 0), (3, 2), (2, 1), (1, 0)):
        mask = (np.arange(1, 4) <= sticks).astype(np.float32)
        seen = {"obs": np.eye(10, dtype=np.float32)[sticks], "action_mask": mask}
        assert int(space["policy"].eval_mode.forward({0: seen})[0]["action"]) == best
    names = {player["player"] for player in space["players_of"](tmp_path / "nim_league")}
    assert space["best"] in names and "main_player_default_0" in names
    result = json.loads((tmp_path / "nim_ppo/result.json").read_text())
    assert result["curve"][-1]["wins_random_first"] > 0.9


def test_the_table_names_settings_that_there_are() -> None:
    known = schema_of(BattleEpisodeCollector)
    names = re.findall(r"`collector\.(\w+)`", PAGE)
    assert "past_share" in names
    for name in names:
        assert name in known
