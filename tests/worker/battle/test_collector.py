"""Battle collectors: whose turn it is, rewards between turns, seats, results, forfeits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.envs import BaseEnvManager
from ding.utils.errors import ConfigError
from ding.worker import create_serial_collector
from ding.worker.battle import BattleEpisodeCollector, BattleSampleCollector, Bot
from dizoo.classic_control.cartpole.envs import CartPoleEnv
from tests.worker.battle.fakes import Endless, Nim, PayingNim, Takes, first_legal, games, learning


def episodes(env: Any, policy: Any, folder: Path, **cfg: Any) -> BattleEpisodeCollector:
    return BattleEpisodeCollector(cfg, env=env, policy=policy, exp_name=str(folder))


def rows(samples: Any) -> list[tuple[Any, ...]]:
    return [
        (s["obs"].tolist(), int(s["action"]), float(s["reward"]), bool(s["done"]), s["next_obs"][0])
        for s in samples
    ]


def test_a_step_goes_from_a_move_to_the_next_turn(tmp_path: Path) -> None:
    """Five sticks, one at a time: 5 4 3 2 1 0; a mover gets 10, the other what is left."""
    with episodes(games(env=PayingNim), [learning(), learning()], tmp_path) as collector:
        (first, second), infos = collector.collect(n_episode=1)
    assert rows(first) == [
        ([5, 0], 0, 10 + 3, False, 3),
        ([3, 0], 0, 10 + 1, False, 1),
        ([1, 0], 0, 10 + 1, True, 0),
    ]
    # What came before the second one's first move (4) is of none of its moves.
    assert rows(second) == [([4, 1], 0, 10 + 2, False, 2), ([2, 1], 0, 10 + 0 - 1, True, 0)]
    assert [info[0]["result"] for info in infos] == ["wins", "losses"]
    assert [info[0]["seat"] for info in infos] == [0, 1]
    assert infos[0][0]["length"] == 5


def test_a_waiting_seat_is_not_asked(tmp_path: Path) -> None:
    first, second = Takes(), Takes()
    with episodes(games(n=2), [first, second], tmp_path) as collector:
        collector.collect(n_episode=2)
    assert first.asked == [[0, 2]] * 3
    assert second.asked == [[1, 3]] * 2


def test_one_policy_at_both_seats(tmp_path: Path) -> None:
    with episodes(games(n=2), learning(), tmp_path) as collector:
        samples = collector.collect(n_episode=4)
        assert collector.episode_count == 4 and collector.envstep == 20
        assert [game.seats for game in collector.games] == [("main", "main")] * 4
    assert len(samples) == 20
    ends = [s["reward"] for s in samples if s["done"]]
    assert sorted(map(float, ends)) == [-1.0] * 4 + [1.0] * 4


def test_named_players_take_both_sides_in_turn(tmp_path: Path) -> None:
    with episodes(games(), {"a": learning(), "b": Takes()}, tmp_path) as collector:
        collector.collect(n_episode=4)
        seats = [game.seats for game in collector.games]
    assert seats == [("b", "a"), ("a", "b")] * 2 or seats == [("a", "b"), ("b", "a")] * 2


def test_samples_are_exact_off_policy_and_none_is_lost(tmp_path: Path) -> None:
    with BattleSampleCollector(
        {}, env=games(n=2), policy=learning(), exp_name=str(tmp_path)
    ) as collector:
        got = [row for _ in range(6) for row in rows(collector.collect(n_sample=7))]
    assert len(got) == 42
    # Every game has these five steps, whichever seat; each came as often, up to those under way.
    counts = [sum(row[0] == [sticks, (5 - sticks) % 2] for row in got) for sticks in range(1, 6)]
    assert sum(counts) == 42 and max(counts) - min(counts) <= 4


def test_on_policy_leaves_no_move_of_an_earlier_policy(tmp_path: Path) -> None:
    policy = learning(on_policy=True)
    with BattleSampleCollector({}, env=games(), policy=policy, exp_name=str(tmp_path)) as collector:
        collector.collect(n_sample=2)
        assert collector.dropped_moves == 1
        assert not collector._policy.players[0].moves.waiting.any()


def test_an_illegal_move_forfeits(tmp_path: Path) -> None:
    """Two at a time of five: 5 3 1, then one stick is left and two are taken."""
    with episodes(games(), [learning(1), learning(1)], tmp_path) as collector:
        _, infos = collector.collect(n_episode=1)
        assert [info[0]["result"] for info in infos] == ["losses", "wins"]
        assert collector.forfeits == 1
        assert collector.games[0].reason == "move 1 of player 0 is illegal"


def test_what_a_bot_raises_forfeits_its_game(tmp_path: Path) -> None:
    def broken(obs: Any, rng: Any) -> int:
        raise ZeroDivisionError("no idea")

    bot = Bot(broken)
    with episodes(games(), [learning(), bot], tmp_path) as collector:
        _, infos = collector.collect(n_episode=2)
        assert [info["result"] for info in infos[0]] == ["wins", "wins"]
        assert collector.forfeits == 2
    assert bot.failures == ["ZeroDivisionError('no idea')"] * 2


def test_a_game_that_never_ends_is_cut_off_as_a_draw(tmp_path: Path) -> None:
    env = games(env=Endless, max_moves=6)
    with episodes(env, [learning(), learning()], tmp_path) as collector:
        (first, _), infos = collector.collect(n_episode=1)
        assert collector.games[0].reason == "cut off after 6 moves (env.max_moves)"
    assert infos[0][0]["result"] == "draws"
    assert [bool(x) for x in first.columns["truncated"]] == [False, False, True]


def test_functions_and_names_are_opponents(tmp_path: Path) -> None:
    names = {"first": first_legal, "chance": "random", "bot": f"{__name__}:always_two"}
    cfg = dict(opponents=names, opponents_share=1.0)
    with episodes(games(n=4), learning(), tmp_path, **cfg) as collector:
        collector.collect(n_episode=60)
        met = {name for game in collector.games for name in game.seats}
        sides = {game.seats.index("main") for game in collector.games}
    assert met == {"main", *names} and sides == {0, 1}


def always_two(obs: Any, rng: np.random.Generator) -> int:
    return 1


def test_bad_input(tmp_path: Path) -> None:
    alone = BaseEnvManager([lambda: CartPoleEnv({})], {})
    for env, policy, cfg, said in (
        (alone, learning(), {}, "needs an env of two players, this one has 1"),
        (games(), [learning()] * 3, {}, "a game has two seats, 3 players were given"),
        (games(), learning(), dict(past_share=0.8, opponents_share=0.4), "nor more than 1"),
        (games(), learning(), dict(opponents_share=0.4), "go together"),
        (games(), learning(), dict(opponents={"x": "no_such:bot"}, opponents_share=1.0), "no_such"),
    ):
        with pytest.raises(ConfigError, match=said):
            episodes(env, policy, tmp_path, **cfg)
    with episodes(games(), learning(), tmp_path) as collector:
        with pytest.raises(RuntimeError, match="how many games"):
            collector.collect()
        collector._policy._deal = lambda env_id: ("main", "nobody")
        with pytest.raises(ConfigError, match="seat 1 is dealt to 'nobody'"):
            collector.collect(n_episode=1)


@pytest.mark.parametrize("name", ["sample_1v1", "episode_1v1"])
def test_registered(name: str, tmp_path: Path) -> None:
    with create_serial_collector(
        dict(type=name), env=games(), policy=learning(n_sample=3), exp_name=str(tmp_path)
    ) as collector:
        amount = {"n_sample": 3} if name == "sample_1v1" else {"n_episode": 1}
        assert len(collector.collect(**amount)) == (3 if name == "sample_1v1" else 5)


def test_nim_is_ten_lines_of_rules() -> None:
    env = Nim()
    env.seed(0)
    obs = env.reset()
    assert obs["to_play"] == 0 and obs["action_mask"].tolist() == [[1, 1, 1]] * 2
    obs, reward, done, _ = env.step([2, 0])
    assert obs["obs"].tolist() == [[2, 0], [2, 1]] and not done and obs["to_play"] == 1
    assert obs["action_mask"][1].tolist() == [1, 1, 0]
    _, reward, done, info = env.step([0, 1])
    assert reward.tolist() == [-1, 1] and done and info["result"] == ["losses", "wins"]
