"""The page about agents: its blocks run one after the other, with few steps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.pipeline.callbacks import EVENTS

PAGE = (Path(__file__).parents[2] / "docs/agent.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_blocks_run_in_order(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {}
    for block in BLOCKS:
        short = block.replace("steps=20_000", "steps=1200")
        exec(short.replace("episodes=10", "episodes=1"), space)
        if "policy.pt2" in block and "torch" in block:
            given = space["obs"]
            found = space["act"](space["torch"].from_numpy(given[None])).detach().numpy()
            np.testing.assert_allclose(found[0], space["agent"].act(given), atol=1e-4)
            assert abs(found.item()) <= 2.0
    assert (directory / "policy.ding").is_file() and (directory / "curve.png").is_file()
    first, last = (space["run"].directory / "ckpt" / f"step_{n}.pth.tar" for n in (1008, 2000))
    assert first.is_file() and last.is_file()
    told = capsys.readouterr().out.splitlines()
    assert told[-len(space["run"].history) :] == [
        f"{point['envstep']} {point['reward_mean']}" for point in space["run"].history
    ]


def test_the_table_names_every_event() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.M)
    assert tuple(rows) == EVENTS
