"""`ding versus`: players by name, tables of known numbers, a person, what is refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import override
from ding.entry.cli import main
from ding.entry.predefined import predefined_config
from ding.entry.selfplay import serial_pipeline_selfplay
from ding.entry.versus import labels_of, pairs_of
from ding.league.run import league_pipeline, players_of
from entry.game_bots import Endless

PERFECT = "dizoo.board_games.envs.tictactoe_env:perfect"
HERE = "entry.game_bots"


def said(capsys: Any, *words: str, code: int = 0) -> str:
    assert main(["versus", *words]) == code
    out, err = capsys.readouterr()
    assert all(len(line) <= 80 for line in out.splitlines())
    return out if code == 0 else err


def flat(text: str) -> str:
    return " ".join(text.split())


def row(text: str, name: str) -> list[str]:
    return next(line for line in text.splitlines() if name in line).split()


def test_a_duel_says_results_by_seat(capsys: Any) -> None:
    text = said(capsys, "tictactoe", f"{HERE}:first_free", f"{HERE}:illegal", "--games", "40")
    assert text.startswith("40 games of tictactoe, seed 0\n\nentry.game_bots:first_free against")
    assert row(text, "as the first")[3:] == [
        "20",
        "20",
        "0",
        "0",
        "100.0%",
        "83.9%",
        "..",
        "100.0%",
    ]
    assert row(text, "together")[1:5] == ["40", "40", "0", "0"]
    assert "Elo difference more than any (95 %: +407 .. more than any)" in text
    assert "entry.game_bots:illegal forfeited 40 of its games: move 99 of player" in flat(text)
    assert "went alike" in flat(text)


def test_the_seed_decides_and_a_perfect_player_never_loses(capsys: Any) -> None:
    words = ("tictactoe", PERFECT, "random", "--games", "50", "-s", "3")
    text = said(capsys, *words)
    assert row(text, "together")[4] == "0" and int(row(text, "together")[2]) > 35
    assert said(capsys, *words) == text
    assert "went alike" not in flat(text)


def test_an_opponent_that_raises_forfeits(capsys: Any) -> None:
    text = said(capsys, "rock_paper_scissors", f"{HERE}:raising", "random", "--games", "4")
    assert row(text, "together")[1:5] == ["4", "0", "0", "4"]
    assert (
        "entry.game_bots:raising forfeited 4 of its games: it raised ValueError('no idea')"
        in flat(text)
    )


def test_a_round_robin_rates_everybody(capsys: Any) -> None:
    players = (PERFECT, "random", f"{HERE}:raising")
    text = said(capsys, "tictactoe", *players, "--games", "30")
    order = [row(text, f" {k}  ")[1] for k in (1, 2, 3)]
    assert order == ["envs.tictactoe_env:perfect", "random", "entry.game_bots:raising"]
    assert row(text, " 3  ")[2:6] == ["60", "0", "0", "60"]
    elo = [float(row(text, f" {k}  ")[6]) for k in (1, 2, 3)]
    assert np.mean(elo) == pytest.approx(1200, abs=1) and elo[0] > elo[1] + 100 > elo[2] + 200
    two = said(capsys, "tictactoe", "random", "random", "--all", "--games", "4")
    assert row(two, "points of the row")[-2:] == ["1", "2"] and "random #2" in two


def test_games_without_an_end_are_cut_off(capsys: Any) -> None:
    place = f"{Endless.__module__}:{Endless.__name__}"
    text = said(capsys, place, "random", "random", "--games", "4", "--max-moves", "30")
    assert row(text, "together")[1:5] == ["4", "0", "4", "0"]
    assert "4 games had no end and count as draws: cut off after 30 moves" in flat(text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versus")
    main_config, create = predefined_config("tictactoe", "ppo")
    over = {"exp_name": str(folder / "run"), "env.n_evaluator_episode": 20}
    over |= {"env.collector_env_num": 16, "policy.collect.n_episode": 64}
    over |= {"policy.learn.batch_size": 64}
    serial_pipeline_selfplay([override(main_config, over), create], max_env_step=400)
    return folder / "run"


def test_runs_and_checkpoints_play(run: Path, capsys: Any) -> None:
    checkpoint = str(run / "ckpt" / "ckpt_best.pth.tar")
    text = said(capsys, "tictactoe", str(run), checkpoint, "--games", "10")
    assert "went alike" in flat(text)
    text = said(capsys, str(run), str(run), checkpoint, "--games", "10", "--sample")
    assert "went alike" not in flat(text)
    err = said(capsys, "connect_four", str(run), "random", code=1)
    assert "is of another game: its obs_shape is 18, here it is 84" in err
    err = said(capsys, "tictactoe", str(run / "gone.pth.tar"), "random", code=1)
    assert "there is nothing there" in err and err.count("\n") == 1


def test_players_of_a_league(tmp_path: Path, capsys: Any) -> None:
    main_config, create = predefined_config("tictactoe", "ppo")
    over = {"exp_name": str(tmp_path / "league"), "env.n_evaluator_episode": 20}
    over |= {"env.collector_env_num": 16, "policy.collect.n_episode": 16}
    over |= {"policy.collect.collector": {}, "policy.learn.batch_size": 32}
    league = dict(active_players=dict(naive_sp_player=1), naive_sp_player=dict(one_phase_step=9))
    config = {**override(main_config, over), "league": league}
    league_pipeline([config, create], max_env_step=200)
    directory = str(tmp_path / "league")
    names = [player["player"] for player in players_of(directory)]
    text = said(capsys, "tictactoe", *(f"{directory}:{name}" for name in names[:2]), "--games", "4")
    assert names[0][-30:] in text  # 80 columns have no room for all of it
    err = said(capsys, "tictactoe", f"{directory}:{names[0]}x", "random", code=1)
    assert f"did you mean '{names[0]}'?" in err
    assert "name one of its players" in said(capsys, "tictactoe", directory, "random", code=1)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("cartpole", "random", "random"), 1, "'cartpole' is not a game of two players"),
        (("tictactoe", "random", "randon"), 1, "unknown player 'randon'; did you mean 'random'?"),
        (("tictactoo", "random", "random"), 1, "unknown game 'tictactoo'; did you mean"),
        (("tictactoe", "random"), 2, "a game has two players"),
        (("tictactoe", "random", f"{HERE}:ilegal"), 1, "did you mean 'illegal'?"),
        (("rock_paper_scissors", "human", "random"), 1, "a person plays turn by turn"),
    ],
)
def test_refusals_are_one_line(words: Any, code: int, message: str, capsys: Any) -> None:
    err = said(capsys, *words, code=code)
    assert message in err and err.count("\n") == 1


def with_input(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_person_plays(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # The other one takes the first free field: 0, 1; a wrong entry is asked again.
    with_input(monkeypatch, "4\nx\n4\n3\n5\n")
    text = said(capsys, "tictactoe", "human", f"{HERE}:first_free", "--games", "1")
    assert "  O | 1 | 2\n  3 | X | 5\n" in text
    assert "'x' is no move here; moves: 1 2 3 5 6 7 8" in text
    assert "  O | O | 2\n  X | X | X\n" in text and "\nyou win\n" in text
    assert row(text, "as the first")[3:6] == ["1", "1", "0"]


def test_the_end_of_input_ends_cleanly(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with_input(monkeypatch, "3\n3\n")
    text = said(capsys, "connect_four", f"{HERE}:first_free", "human")
    assert "  O . . . . . .\n  O . . X . . .\n  0 1 2 3 4 5 6" in text
    assert text.endswith("the input has ended\nno game was played to its end\n")


def test_ctrl_c_shows_the_games_until_then(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(["4\n", "3\n", "5\n"])

    class Interrupted(io.StringIO):
        def readline(self, *args: Any) -> str:
            line = next(lines, None)
            if line is None:
                raise KeyboardInterrupt
            return line

    monkeypatch.setattr("sys.stdin", Interrupted())
    assert main(["versus", "tictactoe", "human", f"{HERE}:first_free"]) == 130
    text = capsys.readouterr().out
    assert "interrupted" in text and row(text, "together")[1:3] == ["1", "1"]


def test_labels_and_pairs() -> None:
    assert labels_of(["runs/a/long_name", "random", "random", "a.b.c:f"], 10) == [
        "long_name",
        "random",
        "random #2",
        "a.b.c:f",
    ]
    assert pairs_of(["a", "b", "c"], 2)[:4] == [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")]
