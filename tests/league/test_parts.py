"""Ratings, payoffs and draws of opponents, by numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ding.league.payoff import BattleSharedPayoff
from ding.league.player import (
    LeagueExploiter,
    MainExploiter,
    MainPlayer,
    NaiveSpPlayer,
    create_player,
    pfsp,
)
from ding.league.rating import LeagueMetricEnv, get_elo, get_elo_array
from ding.utils.errors import ConfigError

ENV = LeagueMetricEnv()


@pytest.mark.parametrize(
    ("rates", "weighting", "expected"),
    [
        ([0.5, 0.0, 1.0], "squared", [0.2, 0.8, 0.0]),
        ([0.5, 0.0, 1.0], "variance", [1.0, 0.0, 0.0]),
        ([0.2, 0.8, 0.5], "variance", [16 / 57, 16 / 57, 25 / 57]),
        ([0.0, 0.0], "squared", [0.5, 0.5]),
        ([0.0, 0.0], "variance", [0.5, 0.5]),
        ([1.0, 1.0], "squared", [0.5, 0.5]),
        ([1.0, 1.0], "variance", [0.5, 0.5]),
    ],
)
def test_pfsp(rates: list[float], weighting: str, expected: list[float]) -> None:
    assert pfsp(np.array(rates), weighting) == pytest.approx(expected)


def test_pfsp_refuses_what_is_no_rate() -> None:
    for rates, weighting in (([0.5, 1.5], "squared"), ([], "squared"), ([0.5], "square")):
        with pytest.raises(ValueError, match=r"win rates|weighting"):
            pfsp(np.array(rates), weighting)


def test_elo() -> None:
    assert get_elo(1200, 1200, 1) == (1216, 1184)
    # 400 points more: 10 to 1 is expected.
    assert get_elo(1600, 1200, 0) == pytest.approx((1600 + 32 * (0.5 - 10 / 11), 1213.0909))
    points = np.array([[0, 2], [1, 0]])
    found = get_elo_array(np.array([1200.0, 1200.0]), points, np.array([[0, 3], [3, 0]]))
    assert found.tolist() == [1216, 1184]


def test_true_skill() -> None:
    """The published numbers for mu 25, sigma 25/3, beta 25/6, tau 25/300, draws 10 %."""
    env = LeagueMetricEnv(25, 25 / 3, 25 / 6, 25 / 300, 0.1)
    new = env.create_rating()
    won, lost = env.rate_1vs1(new, new)
    assert (won.mu, won.sigma) == pytest.approx((29.396, 7.171), abs=1e-3)
    assert (lost.mu, lost.sigma) == pytest.approx((20.604, 7.171), abs=1e-3)
    for one in env.rate_1vs1(new, new, ["draws"]):
        assert (one.mu, one.sigma) == pytest.approx((25.0, 6.458), abs=1e-3)
    assert env.rate_1vs1(new, new, ["losses"])[1] == won
    assert env.rate_1vsC(new, new, ["wins"]) == won
    assert won.interval == pytest.approx((won.mu - 1.96 * won.sigma, won.mu + 1.96 * won.sigma))
    # A draw of unequal ones brings them closer.
    a, b = env.rate_1vs1(won, lost, ["draws"])
    assert a.mu < won.mu and b.mu > lost.mu


def player(kind: type, name: str, payoff: Any, **cfg: Any) -> Any:
    made = kind({**cfg}, "default", payoff, f"{name}.pth", name, 0, ENV.create_rating())
    payoff.add_player(made)
    return made


def test_payoff_by_hand() -> None:
    payoff = BattleSharedPayoff({"decay": 0.5, "min_win_rate_games": 1.5})
    a, b = player(NaiveSpPlayer, "a", payoff), player(NaiveSpPlayer, "b", payoff)
    assert payoff.update({"player_id": ["b", "a"], "result": ["wins"]})
    assert payoff[a, b].tolist() == [[0.5]]  # one game is not enough
    payoff.update({"player_id": ["a", "b"], "result": [["wins"], ["draws"]]})
    # For a: a loss of weight 1/4, a win of 1/2, a draw of 1.
    assert payoff[a, b][0, 0] == pytest.approx((0.5 + 0.5) / 1.75)
    assert payoff[[b, a], [a]][:, 0] == pytest.approx([0.75 / 1.75, 0.5])
    payoff.update({"player_id": ["a", "a"], "result": ["wins"]})
    assert payoff._records["a-a"]["draws"] == 1
    assert not payoff.update({"player_id": ["a", "nobody"], "result": ["wins"]})
    assert payoff.get_key("b", "a") == "a-b" and "0.57" in repr(payoff)


def test_when_a_player_is_copied() -> None:
    payoff = BattleSharedPayoff({"decay": 1.0, "min_win_rate_games": 1})
    a = player(NaiveSpPlayer, "a", payoff, one_phase_step=100)
    a.total_agent_step = 99
    assert not a.is_trained_enough()
    a.total_agent_step = 150
    assert not a.is_trained_enough()  # nobody to compare with
    past = a.snapshot(ENV)
    assert (past.player_id, past.parent_id) == ("a_150_historical", "a")
    assert past.checkpoint_path == "a_150.pth"
    payoff.add_player(past)
    a.total_agent_step = 260
    results = ["wins", "wins", "losses"]
    payoff.update({"player_id": ["a", past.player_id], "result": results})
    assert not a.is_trained_enough()  # 2/3 is not above 0.7
    payoff.update({"player_id": ["a", past.player_id], "result": ["wins"]})
    assert a.is_trained_enough()
    payoff.update({"player_id": ["a", past.player_id], "result": ["losses"] * 9})
    a.total_agent_step = 350
    assert a.is_trained_enough()


def test_whom_they_play() -> None:
    payoff = BattleSharedPayoff({"decay": 1.0, "min_win_rate_games": 1})
    main = player(MainPlayer, "main", payoff, branch_probs={"sp": 1.0})
    exploiter = player(MainExploiter, "main_exploiter_0", payoff)
    league = player(LeagueExploiter, "league_exploiter_0", payoff, mutate_prob=0.0)
    # Nobody has a past: they play themselves, or the main player.
    assert main.get_job()["opponent"] is main and league.get_job()["opponent"] is league
    assert exploiter.get_job()["opponent"] is main
    past = main.snapshot(ENV)
    payoff.add_player(past)
    assert league.get_job()["opponent"] is past
    payoff.update({"player_id": ["main_exploiter_0", "main"], "result": ["losses"] * 4})
    assert exploiter.get_job()["opponent"] is past  # the main player is too strong
    beaten = exploiter.snapshot(ENV)
    payoff.add_player(beaten)
    verifying = player(MainPlayer, "other", payoff, branch_probs={"verification": 1.0})
    payoff.update({"player_id": ["other", beaten.player_id], "result": ["losses"] * 4})
    assert verifying.get_job()["opponent"] is beaten
    reset = {"reset_checkpoint_path": "new.pth"}
    assert exploiter.mutate(reset) == "new.pth"
    assert main.mutate(reset) is None and league.mutate(reset) is None


def test_bad_input() -> None:
    args = ("default", BattleSharedPayoff(), "a.pth", "a", 0, ENV.create_rating())
    for cfg, kind, said in (
        ({}, "naive_player", "did you mean 'naive_sp_player'"),
        ({"main_player": {"phase": 1}}, "main_player", "league.main_player.phase"),
        ({"main_player": {"branch_probs": {"pfps": 1.0}}}, "main_player", "did you mean 'pfsp'"),
        ({"main_player": {"branch_probs": {"sp": 0.7}}}, "main_player", "add up to 1"),
    ):
        with pytest.raises(ConfigError, match=said):
            create_player(cfg, kind, *args)
    with pytest.raises(ConfigError, match="sigma = 0"):
        LeagueMetricEnv(sigma=0)
    with pytest.raises(ConfigError, match=r"decay = 1\.5"):
        BattleSharedPayoff({"decay": 1.5})
