"""Envs where agents take turns: who may act, what it brings, and who is dead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.entry import serial_pipeline
from ding.envs import ParallelAgentsEnv
from ding.envs.pettingzoo_env import PettingZooEnv
from ding.utils.registry import ENV_REGISTRY
from dizoo.matrix_games.config.two_step_qmix_config import main_config


class Relay:
    """Three agents take turns to say 0, 1 or 2; who says what the one before said is out.

    The first may not say 0. All get the number that was said; five turns are all.
    """

    possible_agents = ("a", "b", "c")

    def agent_iter(self) -> None:
        """Marks the interface of turns."""

    def observation_space(self, agent: str) -> gym.Space[Any]:
        seen = gym.spaces.Box(-1, 2, (1, 1), dtype=np.int8)
        return gym.spaces.Dict(observation=seen, action_mask=gym.spaces.MultiBinary(3))

    def action_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Discrete(3)

    def reset(self, seed: int | None = None) -> None:
        self.agents, self.last, self.turn = list(self.possible_agents), -1, 0
        self.agent_selection, self.rewards = "a", dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Any] = {agent: {} for agent in self.agents}
        self.said: list[Any] = []

    def observe(self, agent: str) -> dict[str, Any]:
        return dict(
            observation=np.full((1, 1), self.last),
            action_mask=[agent != "a" or self.last >= 0, 1, 1],
        )

    def step(self, action: Any) -> None:
        me = self.agent_selection
        self.said.append((me, action))
        order = self.agents + self.agents
        following = order[order.index(me) + 1]
        if action is None:
            self.agents.remove(me)
        else:
            self.rewards = dict.fromkeys(self.agents, float(action))
            self.terminations[me] = action == self.last
            self.last, self.turn = action, self.turn + 1
            if self.turn == 5:
                self.truncations = dict.fromkeys(self.agents, True)
        over = [a for a in self.agents if self.terminations[a] or self.truncations[a]]
        self.agent_selection = over[0] if over else following

    def close(self) -> None:
        pass


def test_one_acts_and_the_others_wait() -> None:
    env = ParallelAgentsEnv(Relay)
    first = env.reset()
    assert first["agent_state"].tolist() == [[-1, 1], [-1, 0], [-1, 0]]
    assert first["action_mask"].tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    step = env.step(np.array([2, 0, 0]))
    assert step.obs["agent_state"].tolist() == [[2, 0], [2, 1], [2, 0]]
    assert step.obs["action_mask"].tolist() == [[1, 0, 0], [1, 1, 1], [1, 0, 0]]
    assert step.reward == 6 and not step.done
    assert env.observation_space.contains(step.obs)


def test_who_is_out_is_dead_and_a_limit_is_no_end() -> None:
    game = Relay()
    env = ParallelAgentsEnv(lambda: game)
    env.reset()
    steps = [env.step(np.array(a)) for a in ([2, 0, 0], [0, 2, 0], [0, 0, 1], [2, 0, 0])]
    assert [s.obs["alive"].tolist() for s in steps] == [[1, 1, 1]] + [[1, 0, 1]] * 3
    assert [s.reward for s in steps] == [6, 6, 2, 4]
    assert steps[1].obs["agent_state"][2].tolist() == [2, 1], "the dead has no turn"
    last = env.step(np.array([0, 0, 1]))
    told = {"return_agent_0": 8, "return_agent_1": 4, "return_agent_2": 8}
    assert last.done and last.info == {"eval_episode_return": 20, **told, "truncated": True}
    assert last.obs["alive"].tolist() == [1, 0, 1]
    assert [who for who, said in game.said if said is not None] == ["a", "b", "c", "a", "c"]


def test_a_game_of_pettingzoo_by_id() -> None:
    env = PettingZooEnv(dict(env_family="classic", env_id="tictactoe_v3", reward="each"))
    env.seed(0)
    obs = env.reset()
    assert obs["agent_state"].shape == (2, 19) and obs["global_state"].shape == (38,)
    assert obs["action_mask"][0].all() and obs["action_mask"][1].tolist() == [1] + [0] * 8
    for move in ([0, 0], [0, 3], [1, 0], [0, 4], [2, 0]):
        step = env.step(np.array(move))
    assert step.done and step.reward.tolist() == [1, -1] and "truncated" not in step.info
    env.close()


def test_agents_learn_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ding.pipeline.report.draw_curves", lambda *args: None)

    class RelayEnv(ParallelAgentsEnv):
        def _new_env(self) -> Any:
            return Relay()

    monkeypatch.setitem(ENV_REGISTRY._table, "relay", RelayEnv)
    env = {k: v for k, v in main_config["env"].items() if k != "game"}
    main = {**main_config, "exp_name": "run", "env": {**env, "stop_value": 99}}
    create = dict(env=dict(type="relay"), policy=dict(type="vdn"))
    policy = serial_pipeline([main, create], seed=0, max_train_iter=20)
    assert policy.cfg.model["obs_shape"] == 2
