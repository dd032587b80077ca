"""A league from a config: jobs, copies, ratings from the file of games, killed and resumed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ding.config import override
from ding.entry.cli import main as command
from ding.entry.predefined import predefined_config
from ding.league import BaseLeague, OneVsOneLeague, create_league
from ding.league.games import replay, table
from ding.league.run import LeagueRun, league_pipeline, players_of
from ding.utils.errors import ConfigError
from ding.utils.limits import Limits

LEAGUE: dict[str, Any] = dict(
    active_players=dict(main_player=1, main_exploiter=1),
    main_player=dict(one_phase_step=20),
    main_exploiter=dict(one_phase_step=20),
)


def config(folder: Path, **league: Any) -> list[Any]:
    main, create = predefined_config("league_demo", "ppo")
    main = override(main, {"exp_name": str(folder / "run"), "checkpoint_seconds": 1e9})
    return [{**main, "league": {**LEAGUE, **league}}, create]


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "run" / "games.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def ratings(league: BaseLeague) -> dict[str, Any]:
    return {p.player_id: p.rating for p in (*league.active_players, *league.historical_players)}


def recomputed(folder: Path) -> dict[str, Any]:
    league = create_league({**LEAGUE, "path_policy": str(folder / "again")})
    replay(league, lines(folder))
    return ratings(league)


def test_ratings_follow_from_the_games(tmp_path: Path, drawn: list[Path]) -> None:
    league = league_pipeline(config(tmp_path), max_env_step=700)
    copies = [line for line in lines(tmp_path) if "copy" in line]
    games = [line for line in lines(tmp_path) if "seats" in line]
    # Ten jobs of 64 games are below 700 steps; both players were copied at the start.
    assert Counter(game["job"] for game in games) == dict.fromkeys(range(11), 64)
    assert [line["step"] for line in copies[:2]] == [0, 0] and len(copies) > 2
    assert {"main_player_default_0", "main_exploiter_default_0"} == {c["parent"] for c in copies}
    assert recomputed(tmp_path) == ratings(league)
    for player in players_of(tmp_path / "run"):
        assert Path(player["checkpoint"]).is_file()
    assert drawn == [tmp_path / "run"]
    short = table(league, most=3).splitlines()
    assert max(map(len, short)) <= 80 and short[-1] == f"and {len(copies) - 1} more in league.json"
    assert sum(name in "".join(short) for name in league.active_players_ids) == 2
    first = table(league).splitlines()[1].split()[0]
    assert first == next(iter(league.player_rank())) == players_of(tmp_path / "run")[0]["player"]


def test_a_killed_league_goes_on_without_losing_what_was_saved(tmp_path: Path) -> None:
    cfg = config(tmp_path)
    with LeagueRun(cfg) as run:
        for _ in range(4):
            run.play()
        run.save()
        before = ratings(run.league)
        saved = lines(tmp_path)
        run.play()  # of this nothing is saved
    with LeagueRun(cfg, resume=True) as run:
        assert ratings(run.league) == before and lines(tmp_path) == saved
        assert run.jobs == 4 and run.train_iter > 0
        assert run.league.get_job_info()["launch_player"] == "main_player_default_0"
        for _ in range(3):
            run.play()
        assert recomputed(tmp_path) == ratings(run.league)
    places = [(line["job"], line["index"]) for line in lines(tmp_path) if "seats" in line]
    assert len(set(places)) == len(places) == 7 * 64


def test_an_exploiter_begins_anew_after_its_copy(tmp_path: Path) -> None:
    only = dict(main_player=dict(one_phase_step=10**6))
    with LeagueRun(config(tmp_path, **only)) as run:
        trainee = run.trainees["main_exploiter_default_0"]
        first = trainee.policy.acting_state().parts["model"]
        while len(run.league.historical_players) == 2:
            run.play()
        copied = run.league.historical_players[-1]
        assert copied.parent_id == "main_exploiter_default_0"
        now = trainee.policy.acting_state().parts["model"]
        for name, weights in first.items():
            assert (now[name] == weights).all()


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main, create = config(tmp_path)
    file = tmp_path / "demo_config.py"
    file.write_text(f"main_config = {main!r}\ncreate_config = {create!r}\n")
    assert command(["-m", "league", "-c", str(file), "--env-step", "200"]) == 0
    assert "main_exploiter_default_0" in capsys.readouterr().err
    assert command(["-m", "league", "-c", str(file), "-s", "0", "-s", "1"]) == 1
    assert command(["-m", "league", "-e", "tictactoe", "-p", "ppo"]) == 1
    assert "the config has no league" in capsys.readouterr().err


def test_training_returns_are_those_of_the_player_that_learns(tmp_path: Path) -> None:
    with LeagueRun(config(tmp_path), 0, Limits(env_step=200)) as run:
        run.train()
        shown = list(run._training_returns)
    games = [line for line in lines(tmp_path) if "seats" in line]
    assert len(shown) == min(len(games), 20) and all(isinstance(r, float) for r in shown)


def test_jobs_have_the_documented_form(tmp_path: Path) -> None:
    league = create_league({"path_policy": str(tmp_path), "league_type": "one_vs_one"})
    assert isinstance(league, OneVsOneLeague)
    job = league.get_job_info()
    name = "naive_sp_player_default_0"
    assert job == {
        "agent_num": 2,
        "launch_player": name,
        "player_id": [name, name],
        "checkpoint_path": [str(tmp_path / f"{name}_ckpt.pth")] * 2,
        "player_active_flag": [True, True],
    }
    assert league.get_job_info(name, eval_flag=True)["agent_num"] == 1
    assert not league.judge_snapshot(name)
    (tmp_path / f"{name}_ckpt.pth").write_bytes(b"weights")
    assert league.judge_snapshot(name, force=True)
    league.finish_job({"player_id": [name, f"{name}_0_historical"], "result": ["wins"]})
    assert league.get_player_by_id(name).rating.elo == 1200  # no evaluation
    job = {"player_id": [name, f"{name}_0_historical"], "result": ["wins"], "eval_flag": True}
    league.finish_job(job)
    assert league.get_player_by_id(name).rating.elo == 1216
    assert league.player_rank(string=True).startswith(f"{name}: ")


def test_bad_input(tmp_path: Path) -> None:
    for league, said in (
        (dict(active_player={}), "league.active_player'; did you mean 'active_players'"),
        (dict(active_players={}), "names no player"),
        (dict(payoff=dict(decy=1)), "league.payoff.decy"),
        (dict(league_type="two_vs_two"), "league_type = 'two_vs_two'"),
    ):
        with pytest.raises(ConfigError, match=said):
            LeagueRun(config(tmp_path, **league))
    with (
        LeagueRun(config(tmp_path)) as run,
        pytest.raises(ConfigError, match="no player 'nobody'"),
    ):
        run.league.get_player_by_id("nobody")
    cfg = config(tmp_path)
    with pytest.raises(ConfigError, match="a league plays whole games"):
        LeagueRun([cfg[0], {**cfg[1], "collector": dict(type="sample_1v1")}], limits=Limits())
