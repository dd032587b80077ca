"""A league that is killed, and one of a thousand players."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from benchmarks.league import grown_league, job_seconds, kills
from ding.league.pictures import draw, shown_players


def test_a_killed_league_counts_every_game_once(tmp_path: Path) -> None:
    """Raises where a game is lost or counted twice, or a rating is not that of the games."""
    found = kills(tmp_path, 3, pause=0.05, more=300)
    assert found["kills"] == 3 and found["games"] >= 384


def test_a_job_among_a_thousand_players_is_quick(tmp_path: Path) -> None:
    """The bar is for a machine ten times as slow; `python -m benchmarks --only league` measures."""
    league = grown_league(tmp_path, players=1000, games=20_000)
    assert len(league.payoff.players) == 1000
    assert median(job_seconds(league, 40)) < 0.05


def test_pictures_show_who_learns_and_the_best_of_the_others(tmp_path: Path) -> None:
    league = grown_league(tmp_path, players=60, games=6400)
    players = shown_players(league, most=20)
    assert len(players) == 20 and set(league.active_players) <= set(players)
    skills = [player.rating.mu for player in players]
    assert skills == sorted(skills, reverse=True)
    draw(league, tmp_path)
    for name in ("ratings.png", "payoff.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
