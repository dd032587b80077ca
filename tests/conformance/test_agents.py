"""Agents in plain Gymnasium return what the evaluator returns, for every policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.claims import CLAIMS, Cell, home
from conformance.configs import EXP_NAME, config_of, trained
from ding.agent import load
from ding.entry.evaluation import evaluate
from ding.utils.errors import DingError

EXTRA = [
    Cell("ppo", "vector", "hybrid", masked=True),
    Cell("ppo", "image", "multi_discrete"),
    Cell("sac", "dict", "continuous"),
    Cell("r2d2", "dict", "discrete", masked=True),
]


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)


def with_norm(config: list[dict[str, Any]]) -> list[dict[str, Any]]:
    config[0]["policy"]["obs_norm"] = config[0]["env"]["observation"] != "image"
    return config


@pytest.mark.parametrize("cell", [*map(home, CLAIMS), *EXTRA], ids=str)
def test_returns_are_those_of_the_evaluator(cell: Cell) -> None:
    config = with_norm(config_of(cell))
    trained(config, max_env_step=40)
    wanted = evaluate(config, seed=5, load_path=f"{EXP_NAME}/ckpt/ckpt_best.pth.tar").reward
    agent = load(EXP_NAME)
    assert len(set(wanted)) == 2
    np.testing.assert_allclose(agent.evaluate(episodes=2, seed=5), wanted, rtol=1e-5)
    drawn = agent.evaluate(episodes=2, seed=5, deterministic=False)
    assert drawn.shape == (2,)  # the world refuses what is no action of it
    if CLAIMS[cell.algorithm].recurrent:
        with pytest.raises(DingError, match="cannot be exported: it remembers the episode"):
            agent.export("policy.pt2")
    else:
        agent.export("policy.pt2")  # compares the file with the agent
        assert Path("policy.pt2").is_file()
    agent.save("policy.ding")
    again = load("policy.ding", trusted=True)
    np.testing.assert_array_equal(
        again.evaluate(episodes=2, seed=5), agent.evaluate(episodes=2, seed=5)
    )
