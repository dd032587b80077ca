"""Leagues of tests draw no pictures, which takes longer than their games."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Directories that would have got pictures."""
    where: list[Path] = []
    monkeypatch.setattr("ding.league.run.draw", lambda league, directory: where.append(directory))
    return where
