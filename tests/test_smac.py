"""SMAC's adapter, on a game that only speaks the protocol of `StarCraft2Env`.

StarCraft II itself is not there: that the real game behaves like this is not tested.
"""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from ding.envs import BaseEnvManager, get_env_cls
from ding.utils.batch import ByEnv
from ding.utils.errors import ConfigError, DingError
from dizoo.smac.envs import SMACEnv

LIMIT = 4


class Game:
    """Two agents, three enemies; agent 1 dies in the first step, attacks win in the third."""

    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs, self.closed = kwargs, False
        Game.made.append(kwargs)

    def get_env_info(self) -> dict[str, int]:
        return dict(state_shape=5, obs_shape=4, n_actions=9, n_agents=2, episode_limit=LIMIT)

    def reset(self) -> Any:
        self.steps, self.hits = 0, 0
        return self.get_obs(), self.get_state()

    def step(self, actions: list[int]) -> tuple[float, bool, dict[str, Any]]:
        assert all(type(a) is int for a in actions)
        assert all(self.get_avail_actions()[i][a] for i, a in enumerate(actions)), actions
        self.steps += 1
        self.hits += sum(a >= 6 for a in actions)
        if self.kwargs.get("crashes") and self.steps == 2:
            return 0, True, {}
        won, late = self.hits >= 3, self.steps >= LIMIT
        info = {"battle_won": won, "dead_allies": 1, "dead_enemies": 3 * won}
        return 1.5, won or late, {**info, **({"episode_limit": True} if late and not won else {})}

    def get_avail_actions(self) -> list[list[int]]:
        living = [0, 1, 1, 1, 1, 1, 1, 0, 0]
        return [living, [1] + [0] * 8 if self.steps else living]

    def get_obs(self) -> list[np.ndarray]:
        return [np.full(4, 10 * i + self.steps, np.float32) for i in range(2)]

    def get_state(self) -> np.ndarray:
        return np.arange(5) + self.steps

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def game(monkeypatch: pytest.MonkeyPatch) -> type[Game]:
    monkeypatch.setattr(Game, "made", [])
    monkeypatch.setitem(sys.modules, "smac", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "smac.env", SimpleNamespace(StarCraft2Env=Game))
    return Game


def test_observations(game: type[Game]) -> None:
    env = SMACEnv({"map_name": "8m", "env_kwargs": {"difficulty": "3"}})
    env.seed(5, dynamic_seed=False)
    obs = env.reset()
    assert game.made == [dict(map_name="8m", obs_last_action=True, difficulty="3", seed=5)]
    assert env.observation_space.contains(obs) and env.action_space.shape == (2,)
    assert obs["agent_state"].tolist() == [[0, 0, 0, 0, 1, 0], [10, 10, 10, 10, 0, 1]]
    assert obs["global_state"].tolist() == [0, 1, 2, 3, 4] and obs["alive"].tolist() == [1, 1]
    step = env.step(np.array([6, 1]))
    assert (step.reward, step.done, step.info) == (1.5, False, {})
    assert step.obs["alive"].tolist() == [1, 0] and step.obs["agent_state"][1].tolist()[4:] == [
        0,
        0,
    ]
    assert step.obs["action_mask"][1].tolist() == [1] + [0] * 8
    assert env.random_action()[1] == 0
    env.close()


def test_states_of_each_agent(game: type[Game]) -> None:
    env = SMACEnv({"special_global_state": True, "obs_agent_id": False})
    obs = env.reset()
    assert env.observation_space.contains(obs)
    assert obs["global_state"][1].tolist() == [0, 1, 2, 3, 4, 10, 10, 10, 10]


@pytest.mark.parametrize(
    ("action", "length", "win", "truncated"), [(6, 3, 1.0, False), (1, LIMIT, 0.0, True)]
)
def test_ends(game: type[Game], action: int, length: int, win: float, truncated: bool) -> None:
    env = SMACEnv()
    env.reset()
    for _ in range(length):
        step = env.step([action, 0 if env._env.steps else 1])
    assert step.done and step.info["eval_episode_return"] == step.info["win"] == win
    assert step.info.get("truncated", False) == truncated
    assert step.info["shaped_return"] == 1.5 * length and step.info["dead_enemies"] == 3 * win
    with pytest.raises(DingError, match="no running battle"):
        env.step([1, 0])


def test_a_lost_game_is_no_episode(game: type[Game]) -> None:
    with BaseEnvManager([lambda: SMACEnv({"env_kwargs": {"crashes": True}})]) as manager:
        manager.launch()
        manager.step(ByEnv(np.arange(1), np.array([[1, 1]])))
        step = manager.step(ByEnv(np.arange(1), np.array([[1, 0]]))).stacked
        assert step.abnormal.tolist() == [True]


def test_bad_input(game: type[Game], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"env.env_kwargs has \['seed'\]"):
        SMACEnv({"env_kwargs": {"seed": 1}})
    env = SMACEnv()
    env.reset()
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(env)
    env.close()
    assert pickle.loads(pickle.dumps(env))._env is None
    # The optimiser of the same name has no `smac.env`.
    monkeypatch.setitem(sys.modules, "smac.env", None)
    with pytest.raises(DingError, match=r"oxwhirl.*another project.*micro_battle"):
        get_env_cls({"type": "smac"})({}).reset()
