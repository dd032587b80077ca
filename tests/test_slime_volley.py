"""Slime volley: its physics by hand, both seats alike, points, the bot, a video."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import override
from ding.entry import eval as evaluate
from ding.entry.predefined import predefined_config
from ding.entry.selfplay import serial_pipeline_selfplay
from ding.envs.manager import BaseEnvManager
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.league.run import LeagueRun
from ding.utils.batch import ByEnv
from ding.utils.errors import ConfigError
from dizoo.slime_volley.envs import SlimeVolleyEnv
from dizoo.slime_volley.envs.bot import bot, landing
from dizoo.slime_volley.envs.volley import (
    BALL_RADIUS,
    FENCE_HEIGHT,
    FRAME,
    GRAVITY,
    GROUND,
    WIDTH,
    Body,
    Volley,
)

STAND, FORWARD, UP = 0, 1, 3


def volley(x: float = 0.0, y: float = 12.0, vx: float = 0.0, vy: float = 0.0) -> Volley:
    """A rally in which the ball is here, already thrown."""
    game = Volley(np.random.default_rng(0))
    game.ball, game.pause = Body(x, y, vx, vy, BALL_RADIUS), 0
    return game


def test_the_ball_falls_and_whoever_it_falls_to_loses() -> None:
    game = volley(x=5.0, y=10.0)
    assert game.step((STAND, STAND)) is None
    assert game.ball.vy == pytest.approx(GRAVITY * FRAME)
    assert game.ball.y == pytest.approx(10 + GRAVITY * FRAME**2)
    for side, winner in ((5.0, 0), (-5.0, 1)):
        game, found = volley(x=side, y=10.0), None
        while found is None:
            found = game.step((STAND, STAND))
        assert found == winner and game.pause > 0  # the next ball waits


def test_walls_fence_and_slimes_reflect() -> None:
    game = volley(x=WIDTH / 2 - 0.6, vx=20.0)
    game.step((STAND, STAND))
    assert game.ball.vx == -20 and game.ball.x < WIDTH / 2 - BALL_RADIUS
    game = volley(x=1.1, y=FENCE_HEIGHT - 1.5, vx=-10.0, vy=5.0)
    game.step((STAND, STAND))
    assert game.ball.vx == 10 and game.ball.x > 1
    slime = game.slimes[1]
    game.ball = Body(slime.x, GROUND + 2.05, 0.0, -5.0, BALL_RADIUS)
    game.step((STAND, STAND))
    assert game.ball.vy == pytest.approx(5 - GRAVITY * FRAME) and game.ball.vx == 0


def test_slimes_jump_and_stay_on_their_side() -> None:
    game = volley(y=30.0)
    game.step((UP, FORWARD))
    assert game.slimes[0].y > GROUND and game.slimes[1].vx < 0
    for _ in range(60):
        game.step((FORWARD, FORWARD))
    assert [slime.x for slime in game.slimes] == [-2.0, 2.0]
    assert game.slimes[0].y == GROUND


def test_both_seats_are_alike() -> None:
    """What one does in a mirrored rally comes to the same, mirrored."""
    one, other = volley(3.0, 9.0, -7.0, 6.0), volley(-3.0, 9.0, 7.0, 6.0)
    rng = np.random.default_rng(0)
    for _ in range(80):
        first, second = (int(x) for x in rng.integers(6, size=2))
        won = [one.step((first, second)), other.step((second, first))]
        if won != [None, None]:
            assert sorted(won) == [0, 1]
            return
        for seat in (0, 1):
            np.testing.assert_allclose(one.seen(seat), other.seen(1 - seat), atol=1e-6)
    raise AssertionError("the rally has no end")


def test_where_the_ball_comes_down() -> None:
    game = volley(x=9.0, y=9.0, vx=19.0, vy=8.0)
    place = landing(np.array([9.0, 9.0, 19.0, 8.0]))
    while game.ball.y > GROUND + 1.5 or game.ball.vy > 0:
        game.step((STAND, STAND))
    assert game.ball.x == pytest.approx(place, abs=1.0) and game.ball.vx < 0  # off the wall


def played(env: Any, first: Any, second: Any) -> Any:
    rng, obs, done = np.random.default_rng(0), env.reset(), False
    while not done:
        obs, _, done, info = env.step([first(obs[0], rng), second(obs[1], rng)])
    return info


def test_the_bot_beats_random_play_at_either_seat() -> None:
    env = SlimeVolleyEnv(dict(action_repeat=2))
    env.seed(0)

    def chance(obs: Any, rng: np.random.Generator) -> int:
        return int(rng.integers(6))

    first, second = played(env, bot, chance), played(env, chance, bot)
    assert first["result"] == ["wins", "losses"] and second["result"] == ["losses", "wins"]
    returns = first["eval_episode_return"]
    assert returns.sum() == 0 and returns[0] >= 3 and "truncated" not in first
    env = SlimeVolleyEnv(dict(frames=40))
    info = played(env, bot, bot)
    assert info["result"] == ["draws", "draws"] and info["truncated"]


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="lives = 0: must be a number from 1 on"):
        SlimeVolleyEnv(dict(lives=0))
    env = SlimeVolleyEnv()
    env.reset()
    step = env.step([9, 0])
    assert step.done and step.reward.tolist() == [-5, 5] and step.info["forfeit"] == 0


def short(name: str, folder: Path) -> list[Any]:
    main, create = predefined_config("slime_volley", name)
    over = {"exp_name": str(folder / "run"), "env.frames": 120, "env.collector_env_num": 4}
    over |= {"env.evaluator_env_num": 2, "env.n_evaluator_episode": 2}
    over |= {"policy.learn.batch_size": 64}
    amount = {"policy.collect.n_sample": 256} if name == "ppo" else {"policy.collect.n_episode": 8}
    return [override(main, over | amount), create]


def test_self_play_league_and_pictures(tmp_path: Path) -> None:
    serial_pipeline_selfplay(short("ppo", tmp_path), max_env_step=200)
    with LeagueRun(short("league_ppo", tmp_path / "league")) as run:
        run.play()
        assert run.jobs == 1
    env = SlimeVolleyEnv()
    env.reset()
    assert env.render().shape == (336, 576, 3) and len(np.unique(env.render())) > 5
    if find_spec("imageio_ffmpeg") is not None:
        best = tmp_path / "run" / "ckpt" / "ckpt_best.pth.tar"
        evaluate(short("ppo", tmp_path), load_path=best, replay_path=tmp_path / "film")
        assert len(list((tmp_path / "film").glob("*.mp4"))) == 2


def managed(kind: type) -> Any:
    manager = kind([partial(SlimeVolleyEnv, {"lives": 2, "frames": 250, "action_repeat": 3})] * 6)
    manager.seed(1)
    manager.launch()
    return manager


def steps_of(manager: Any, n_step: int) -> list[Any]:
    """Some at random, some as the bot; two envs wait, one moves illegally once."""
    rng, steps = np.random.default_rng(0), []
    for k in range(n_step):
        obs = manager.ready_obs
        moves = rng.integers(6, size=(len(obs.ids), 2))
        for i in range(2, 6):
            moves[i] = [bot(seen, rng) for seen in obs.stacked[i]]
        moves[3, 0] = 9 if k == 20 else moves[3, 0]
        keep = np.arange(6) // 2 != k % 9
        steps.append(manager.step(ByEnv(obs.ids[keep], moves[keep])).stacked)
    return steps


def test_both_managers_play_the_same_games() -> None:
    with managed(BaseEnvManager) as one, managed(GymVectorEnvManager) as many:
        assert many.observation_space == one.observation_space
        ends = []
        for ours, theirs in zip(steps_of(one, 300), steps_of(many, 300), strict=True):
            for field in ("obs", "reward", "done", "truncated", "env_id"):
                np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
            for k in np.flatnonzero(ours.done):
                ends.append(ours.info[k])
                assert ours.info[k].keys() == theirs.info[k].keys()
                for key, value in ours.info[k].items():
                    np.testing.assert_array_equal(value, theirs.info[k][key])
        for i, image in one.ready_imgs.items():
            np.testing.assert_array_equal(image, many.ready_imgs[i])
        assert {info.get("forfeit") for info in ends} == {None, 0}
        assert {bool(info.get("truncated")) for info in ends} == {True, False}
