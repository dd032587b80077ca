"""Pictures of learning curves: a panel for each kind of number that evaluations have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot as plt

from ding.pipeline.report import draw_curves

RETURN = dict(reward_mean=1.0, reward_std=0.5)
WON, BY_AGENT = dict(win_rate=0.5), dict(reward_mean_agent_0=1.0, reward_mean_agent_1=3.0)


def curve(**more: float) -> list[dict[str, float]]:
    return [dict(envstep=step, **RETURN, **more) for step in (0, 10)]


def drawn(curves: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Label of each panel and the names of its lines."""
    figures: list[Any] = []
    close = plt.close
    monkeypatch.setattr(plt, "close", figures.append)
    draw_curves(tmp_path / "curve.png", curves, 2.0, "run")
    (figure,) = figures
    panels = [(a.get_ylabel(), a.get_legend_handles_labels()[1]) for a in figure.axes]
    close(figure)
    return panels


def test_a_panel_for_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curves = {"seed 0": curve(**WON, **BY_AGENT), "seed 1": curve(**WON, **BY_AGENT)}
    assert drawn(curves, tmp_path, monkeypatch) == [
        ("return of evaluation episodes", ["seed 0", "seed 1", "goal 2"]),
        ("win rate", ["seed 0", "seed 1"]),
        ("return by agent", ["agent 0", "agent 1"]),
    ]


def test_runs_of_several_kinds_in_one_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves = {"plain": curve(), "battle": curve(**WON)}
    assert drawn(curves, tmp_path, monkeypatch) == [
        ("return of evaluation episodes", ["plain", "battle", "goal 2"]),
        ("win rate", ["battle"]),
    ]
    assert len(drawn({"plain": curve()}, tmp_path, monkeypatch)) == 1
