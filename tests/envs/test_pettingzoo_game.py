"""PettingZoo's games of two, turn by turn and both at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import BaseEnvManager
from ding.envs.pettingzoo_game import PettingZooGame
from ding.utils.errors import ConfigError, DingError
from ding.worker.battle import BattleEvaluator, Bot

pytest.importorskip("pettingzoo")


def played(env: PettingZooGame, moves: list[int]) -> Any:
    env.seed(0)
    env.reset()
    step: Any = None
    for move in moves:
        step = env.step(np.array([move, move]))
    return step


def test_four_in_a_column() -> None:
    env = PettingZooGame({"env_id": "classic.connect_four_v3"})
    assert env.observation_space["obs"].shape == (2, 84)
    step = played(env, [0, 1, 0, 1, 0])
    assert not step.done and step.obs["to_play"] == 1 and step.reward.tolist() == [0, 0]
    step = env.step(np.array([3, 6]))
    assert step.obs["to_play"] == 0 and not step.done  # the second one's move was 6
    step = env.step(np.array([0, 6]))
    assert step.done and step.reward.tolist() == [1, -1]
    assert step.info["result"] == ["wins", "losses"]
    assert step.info["eval_episode_return"].tolist() == [1, -1]
    with pytest.raises(DingError, match="no running game"):
        env.step([0, 0])


def test_an_illegal_move_loses() -> None:
    step = played(PettingZooGame({"env_id": "classic.tictactoe_v3"}), [4, 4])
    assert step.done and step.reward.tolist() == [1, -1] and step.info["forfeit"] == 1


def test_rewards_of_rounds_add_up() -> None:
    """Paper (1) beats rock (0) twice, then a draw."""
    env = PettingZooGame({"env_id": "classic.rps_v2", "env_kwargs": {"max_cycles": 3}})
    step = played(env, [1, 0, 1, 0, 2, 2])
    assert step.done and step.info["eval_episode_return"].tolist() == [2, -2]
    assert step.info["truncated"] and step.info["result"] == ["wins", "losses"]
    cut = played(PettingZooGame({"env_id": "classic.rps_v2", "max_moves": 2}), [0, 0])
    assert cut.done and "cut off after 2 moves" in cut.info["reason"]


class Pennies:
    """Parallel env: the first wins if both show the same."""

    def __init__(self) -> None:
        self.possible_agents = ["even", "odd"]
        self.agents: list[str] = []
        self.metadata = {"is_parallelizable": True}
        self.render_mode = None

    @property
    def unwrapped(self) -> Pennies:
        return self

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Box(0, 1, (1,), dtype=np.float32)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Discrete(2)

    def reset(self, seed: Any = None, options: Any = None) -> Any:
        self.agents = list(self.possible_agents)
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        won = 1.0 if actions["even"] == actions["odd"] else -1.0
        over = dict.fromkeys(self.agents, True)
        cut = dict.fromkeys(self.agents, False)
        infos: Any = {agent: {} for agent in self.agents}
        self.agents = []
        return self._seen(), {"even": won, "odd": -won}, over, cut, infos

    def _seen(self) -> dict[str, Any]:
        return {agent: np.ones(1, np.float32) for agent in self.possible_agents}

    def close(self) -> None: ...


def test_both_at_once() -> None:
    env = PettingZooGame(Pennies)
    env.seed(0)
    assert env.reset()["to_play"] == 0
    step = env.step([1, 0])
    assert step.obs["to_play"] == 1 and step.obs["obs"].tolist() == [[1], [1]] and not step.done
    step = env.step([0, 1])
    assert step.done and step.reward.tolist() == [1, -1]


def test_battles_are_played_in_it(tmp_path: Path) -> None:
    make = lambda: PettingZooGame({"env_id": "classic.tictactoe_v3"})  # noqa: E731
    manager = BaseEnvManager([make, make], {})
    manager.seed(0)

    def first_legal(obs: Any, rng: Any) -> int:
        return int(np.flatnonzero(obs["action_mask"])[0])

    policy = Bot(first_legal)
    with BattleEvaluator({}, env=manager, policy=policy, exp_name=str(tmp_path)) as evaluator:
        games = evaluator.play(6)
    assert len(games) == 6 and all(game.forfeit is None for game in games)


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="PettingZoo has no such game"):
        PettingZooGame({"env_id": "classic.no_game_v1"}).reset()
    with pytest.raises(DingError, match="needs a factory"):
        PettingZooGame({})
