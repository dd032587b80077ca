"""Matches of a league played elsewhere: each counted once, whatever dies meanwhile."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.league.games_service import GamesService, Match
from ding.league.run import LeagueRun, league_pipeline
from ding.parallel.backend import Call, ThreadBackend
from ding.pipeline.blueprint import Blueprint
from ding.utils.errors import ConfigError
from ding.utils.limits import Limits

from .test_run import config, lines, ratings, recomputed


class DyingCollectors(ThreadBackend):
    """Kills the collector that gets every third match, as it gets it."""

    matches = killed = 0

    def call(self, service: Any, method: str, *args: Any) -> Call:
        call = super().call(service, method, *args)
        self.matches += 1
        if self.matches % 3 == 0 and self.killed < 20:
            self.killed += 1
            self.kill(service)
        return call


def test_every_game_counts_once_though_collectors_die(tmp_path: Path) -> None:
    backend = DyingCollectors()
    cfg = config(tmp_path, collector_num=2)
    with LeagueRun(cfg, limits=Limits(env_step=2600), start=lambda: backend) as run:
        run.train()
        league = run.league
        assert run.envstep == sum(line["steps"] for line in lines(tmp_path) if "seats" in line)
    assert backend.killed >= 15
    played = Counter(line["job"] for line in lines(tmp_path) if "seats" in line)
    # A lost match is dealt anew under another number.
    assert set(played.values()) == {64} and len(played) < max(played) + 1
    assert recomputed(tmp_path) == ratings(league)
    assert all(trainee.learner.train_iter > 0 for trainee in run.trainees.values())


def test_matches_of_dead_runs_are_dealt_again(tmp_path: Path) -> None:
    cfg = config(tmp_path, collector_num=2)
    with LeagueRun(cfg, start=ThreadBackend) as run:
        for _ in range(3):
            run.play()
        run.save()
        counted = sum("seats" in line for line in lines(tmp_path))
        assert run._arena.playing  # Another match is under way, and lost.
    with LeagueRun(cfg, resume=True, start=ThreadBackend) as run:
        assert run.jobs > counted / 64 and not run._arena.playing
        run.play()
        assert recomputed(tmp_path) == ratings(run.league)
    places = [(line["job"], line["index"]) for line in lines(tmp_path) if "seats" in line]
    assert len(set(places)) == len(places) > counted


def test_games_of_a_match_do_not_depend_on_where_it_is_played(tmp_path: Path) -> None:
    with LeagueRun(config(tmp_path)) as run:
        blueprint = Blueprint(run.cfg, 0)
        names = tuple(run.trainees)
        states = {name: trainee.policy.acting_state() for name, trainee in run.trainees.items()}
    results = []
    for index, before in ((0, []), (1, [6, 5])):
        service = GamesService(blueprint, index)
        for number in (*before, 7):
            played = service.play(Match(number, names, states, 0, {}))[1]
        results.append(played)
        service.close()
    one, other = results
    assert [game.returns for game in one.games] == [game.returns for game in other.games]
    assert one.env_steps == other.env_steps == 64
    for name, column in one.samples.items():
        np.testing.assert_array_equal(column, other.samples[name])


def test_wrong_numbers_of_collectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (-1, 1.5, True):
        with pytest.raises(ConfigError, match=r"league\.collector_num = .*whole number"):
            LeagueRun(config(tmp_path, collector_num=wrong))
    cfg = config(tmp_path, collector_num=3)
    league_pipeline(cfg, max_env_step=100, start=ThreadBackend)
    assert "but 2 player(s) learn" in capsys.readouterr().err
