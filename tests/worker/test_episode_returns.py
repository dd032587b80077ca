from __future__ import annotations

import numpy as np
import pytest

from ding.worker.episode_returns import EpisodeReturns, besides_return


def of(returns: list[float], **columns: list[object]) -> EpisodeReturns:
    columns = {"length": [5] * len(returns), **columns}
    rows = zip(*columns.values(), strict=True)
    return EpisodeReturns(returns, [dict(zip(columns, row, strict=True)) for row in rows])


def test_win_rate_and_means_of_agents() -> None:
    won = [True, np.True_, 0.0, np.float32(1)]
    returns = of([4, 0, 2, 2], win=won, return_agent_0=[3, 0, 1, 2], return_agent_1=[1, 0, 1, 0])
    assert returns.win_rate == 0.75 and returns.agents == [1.5, 0.5]
    entry = returns.summary()
    assert entry["reward_mean"] == 2 and entry["reward_std"] == pytest.approx(2**0.5)
    assert (entry["reward_max"], entry["reward_min"], entry["avg_episode_length"]) == (4, 0, 5)
    assert (entry["win_rate"], entry["reward_mean_agent_1"]) == (0.75, 0.5)
    assert besides_return(entry) == ", win rate 0.75, by agent 1.5, 0.5"
    assert besides_return(entry, 2) == ", win rate 0.75, by agent 1.50, 0.50"


def test_an_env_that_says_neither() -> None:
    returns = of([1, 2])
    assert returns.win_rate is None and returns.agents == []
    assert "win_rate" not in returns.summary() and besides_return(returns.summary()) == ""


def test_what_only_some_episodes_report_is_left_out() -> None:
    infos = [dict(length=1, win=1.0, text="no number"), dict(length=2, text="none")]
    assert EpisodeReturns([1, 2], infos).win_rate is None


def test_agents_beyond_the_ninth_keep_their_order() -> None:
    columns = {f"return_agent_{k}": [float(k)] for k in range(12)}
    assert of([66], **columns).agents == list(range(12))


def test_episodes_of_two_evaluations() -> None:
    both = of([1, 2], win=[1.0, 0.0]).joined(of([6], win=[1.0]))
    assert list(both) == [1, 2, 6] and both["length"] == [5, 5, 5]
    assert both.win_rate == pytest.approx(2 / 3)
