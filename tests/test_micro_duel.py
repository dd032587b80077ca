"""The battle of two teams: alike from both sides, decided by who kills, learned in a league."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ding.config import override
from ding.entry.predefined import predefined_config
from ding.envs.manager import BaseEnvManager
from ding.envs.manager.gym_vector import GymVectorEnvManager
from ding.league.run import LeagueRun
from ding.utils.batch import ByEnv
from ding.utils.errors import ConfigError, DingError
from dizoo.micro_battle.envs.battle import ATTACK, EAST, STOP
from dizoo.micro_battle.envs.duel_env import DuelEnv


def duel(**cfg: Any) -> DuelEnv:
    env = DuelEnv(cfg)
    env.seed(0)
    env.reset()
    return env


def attack(mask: np.ndarray) -> np.ndarray:
    """Each shoots at the first enemy in range, else goes to meet them."""
    options = [*range(ATTACK, mask.shape[1]), EAST, STOP, 0]
    return np.array([next(one for one in options if row[one]) for row in mask])


def wait(mask: np.ndarray) -> np.ndarray:
    return np.where(mask[:, STOP] > 0, STOP, 0)


def played(env: DuelEnv, first: Any, second: Any) -> Any:
    obs, done = env._observed(), False
    while not done:
        masks = obs["action_mask"]
        obs, reward, done, info = env.step([first(masks[0]), second(masks[1])])
    return reward, info


@pytest.mark.parametrize("map_name", ["3m", "2s3z"])
def test_both_sides_are_alike(map_name: str) -> None:
    env = duel(map_name=map_name)
    state, half = env.arena.battles.state, env.arena.battles.n_ally
    state["x"][:, half:] = 32 - state["x"][:, :half]
    state["y"][:, half:] = state["y"][:, :half]
    for _ in range(12):
        obs = env._observed()
        for column in obs.values():
            np.testing.assert_allclose(column[0], column[1], atol=1e-6)
        move = attack(obs["action_mask"][0])
        step = env.step([move, move])
        if step.done:
            break
    assert step.reward.tolist() == pytest.approx([0, 0], abs=1e-6)
    assert (state["health"][0] < env.arena.battles.health).any()


@pytest.mark.parametrize("winner", [0, 1])
def test_who_shoots_wins_at_either_seat(winner: int) -> None:
    """Full health is taken and a share of the own one lost; the win is worth 1 more."""
    teams = (attack, wait) if winner == 0 else (wait, attack)
    reward, info = played(duel(), *teams)
    assert info["result"][winner] == "wins" and info["result"][1 - winner] == "losses"
    returns = info["eval_episode_return"]
    assert returns.sum() == pytest.approx(0, abs=1e-5) and returns[winner] == pytest.approx(2.0)
    assert reward[winner] > 1


def test_nobody_comes() -> None:
    _, info = played(duel(episode_limit=5), wait, wait)
    assert info["result"] == ["draws", "draws"] and info["truncated"]


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="'5m_vs_6m': both sides of a duel must be alike"):
        DuelEnv(dict(map_name="5m_vs_6m"))
    with pytest.raises(ConfigError, match="episode_limit = 0"):
        DuelEnv(dict(episode_limit=0))
    env = duel()
    step = env.step([[EAST] * 3, [EAST, 99, EAST]])
    assert step.done and step.info["forfeit"] == 1 and step.info["result"] == ["wins", "losses"]
    assert "action 99 of agent 1 of team 1" in step.info["reason"]
    with pytest.raises(DingError, match="call reset"):
        env.step([[EAST] * 3] * 2)


def short_league(tmp_path: Path, batch_size: int) -> LeagueRun:
    main, create = predefined_config("micro_duel_3m", "league_mappo")
    over = {"exp_name": str(tmp_path / "run"), "env.episode_limit": 10, "env.collector_env_num": 4}
    over |= {"policy.collect.n_episode": 4, "policy.learn.batch_size": batch_size}
    over |= {"env.evaluator_env_num": 2, "env.n_evaluator_episode": 2}
    return LeagueRun([override(main, over), create])


def test_a_league_of_teams_plays_and_learns(tmp_path: Path) -> None:
    with short_league(tmp_path, batch_size=40) as run:
        for _ in range(3):
            run.play()
        assert run.jobs == 3 and all(t.learner.train_iter for t in run.trainees.values())


def test_games_that_are_too_short_for_a_batch_are_learned_from_as_they_are(tmp_path: Path) -> None:
    with short_league(tmp_path, batch_size=500) as run:
        run.play()
        assert sum(t.learner.train_iter for t in run.trainees.values()) > 0


def managed(kind: type, count: int = 4) -> Any:
    manager = kind([partial(DuelEnv, {"map_name": "2s3z", "episode_limit": 12})] * count)
    manager.seed(3)
    manager.launch()
    return manager


def steps_of(manager: Any, n_step: int) -> list[Any]:
    """All shoot where they can; the second env alone does what it can't, once."""
    steps = []
    for k in range(n_step):
        obs = manager.ready_obs
        moves = np.array([[attack(mask) for mask in masks] for masks in obs.stacked["action_mask"]])
        if k == 3:
            moves[1, 1, 2] = 99
        keep = np.arange(len(obs.ids)) != k % 3  # one of them waits
        steps.append(manager.step(ByEnv(obs.ids[keep], moves[keep])).stacked)
    return steps


def test_both_managers_run_the_same_battles() -> None:
    with managed(BaseEnvManager) as one, managed(GymVectorEnvManager) as many:
        assert many.observation_space == one.observation_space
        assert many.action_space == one.action_space
        ends = []
        for ours, theirs in zip(steps_of(one, 30), steps_of(many, 30), strict=True):
            for field in ("reward", "done", "truncated", "abnormal", "env_id"):
                np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
            for key in ours.obs:
                np.testing.assert_array_equal(ours.obs[key], theirs.obs[key])
            for k in np.flatnonzero(ours.done):
                ends.append(ours.info[k])
                assert ours.info[k].keys() == theirs.info[k].keys()
                for key, value in ours.info[k].items():
                    np.testing.assert_array_equal(value, theirs.info[k][key])
        assert {info.get("forfeit") for info in ends} == {None, 1}
        assert any(info.get("truncated") for info in ends)
