"""Envs with agents: their space, and dicts by agent stacked into the documented observation."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import AgentsSpace, ParallelAgentsEnv, create_env_manager
from ding.utils.errors import ConfigError, DingError

SEEN = {"a": 2, "b": 2, "c": 2}


class Trio:
    """Three agents who see (number, step); 'b' dies after step 2, and four steps are all.

    Rewards are 1, 10 and 100 times the action.
    """

    def __init__(self, sizes: dict[str, int] | None = None, end: str = "truncated") -> None:
        self.sizes, self.end = sizes or SEEN, end
        self.possible_agents = list(self.sizes)
        self.got: list[dict[str, Any]] = []

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Box(-9, 9, (self.sizes[agent],), dtype=np.float64)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Discrete(self.sizes[agent] + 1)

    def _seen(self) -> dict[str, Any]:
        return {a: np.full(self.sizes[a], 10.0 * self.possible_agents.index(a) + self.t)
                for a in self.agents}  # fmt: skip

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.t, self.agents = 0, list(self.possible_agents)
        return self._seen(), {"a": {"action_mask": np.array([1, 0, 1])}}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        self.t += 1
        self.got.append(actions)
        over, rewards = self.t == 4, dict(zip("abc", (1, 10, 100), strict=True))
        seen = self._seen()
        dies = {a: (a == "b" and self.t == 2) or (over and self.end == "all") for a in self.agents}
        cut = dict.fromkeys(self.agents, over and self.end == "truncated")
        reward = {a: rewards[a] * actions[a] for a in self.agents}
        self.agents = [a for a in self.agents if not (dies[a] or cut[a])]
        return seen, reward, dies, cut, {}


def test_a_space_of_agents() -> None:
    space = AgentsSpace(gym.spaces.Discrete(5), 3)
    assert space.shape == (3,) and space.dtype == np.int64
    assert space != gym.spaces.MultiDiscrete([5, 5, 5])
    assert space == AgentsSpace(gym.spaces.Discrete(5), 3) == pickle.loads(pickle.dumps(space))
    space.seed(0)
    assert space.sample() in space
    for other in ([0, 5, 0], [0, 1], 3):
        assert np.array(other) not in space
    assert AgentsSpace(gym.spaces.Box(-1, 1, (2,)), 3).sample().shape == (3, 2)


def test_dicts_by_agent_become_arrays() -> None:
    cfg = dict(obs_agent_id=True, obs_last_action=True, reward_scale=0.5)
    env = ParallelAgentsEnv(Trio, cfg)
    first = env.reset()
    assert env.observation_space.contains(first)
    assert first["agent_state"].shape == (3, 2 + 3 + 3)
    assert first["agent_state"][2].tolist() == [20, 20, 0, 0, 1, 0, 0, 0]
    assert first["global_state"].tolist() == [0, 0, 10, 10, 20, 20]
    assert first["action_mask"].tolist() == [[1, 0, 1], [1, 1, 1], [1, 1, 1]]
    assert first["alive"].tolist() == [1, 1, 1]
    step = env.step(np.array([2, 1, 0]))
    assert step.reward == 0.5 * (2 + 10) and not step.done
    assert step.obs["agent_state"][:, 5:].tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_the_dead_see_nothing_do_nothing_and_get_nothing() -> None:
    game = Trio()
    env = ParallelAgentsEnv(lambda: game, dict(reward="each", obs_last_action=True))
    env.reset()
    steps = [env.step(np.array([1, int(t < 2), 1])) for t in range(4)]
    assert [s.obs["alive"].tolist() for s in steps] == [[1, 1, 1], [1, 0, 1], [1, 0, 1], [1, 0, 1]]
    assert steps[1].reward.tolist() == [1, 10, 100]  # that of its last step counts
    assert steps[2].reward.tolist() == [1, 0, 100]
    assert steps[1].obs["agent_state"][1].tolist() == [0, 0, 0, 0, 0]
    assert steps[1].obs["action_mask"].tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 1]]
    assert [sorted(a) for a in game.got] == [["a", "b", "c"]] * 2 + [["a", "c"]] * 2
    assert [s.done for s in steps] == [False, False, False, True]
    told = {"return_agent_0": 4, "return_agent_1": 20, "return_agent_2": 400}
    assert steps[3].info == {"eval_episode_return": 424, **told, "truncated": True}


def test_an_agent_that_acts_after_its_death_is_an_error() -> None:
    env = ParallelAgentsEnv(Trio)
    env.reset()
    for _ in range(2):
        env.step(np.array([1, 1, 1]))
    with pytest.raises(DingError, match=r"agent 'b' of .* is dead, but takes action 2; agents who"):
        env.step(np.array([1, 2, 1]))
    assert {int(env.random_action()[1]) for _ in range(9)} == {0}
    blind = ParallelAgentsEnv(Trio, dict(agent_obs_only=True))  # nobody could know
    blind.reset()
    assert blind.step(blind.random_action()).obs.shape == (3, 2)
    assert not [blind.step(np.array([1, 1, 1])).done for _ in range(2)][-1]


@pytest.mark.parametrize(
    ("end", "limit", "n", "truncated"),
    [("all", None, 4, False), ("truncated", None, 4, True), ("all", 3, 3, True)],
)
def test_a_limit_cuts_off_what_else_would_go_on(
    end: str, limit: Any, n: int, truncated: bool
) -> None:
    env = ParallelAgentsEnv(lambda: Trio(end=end), dict(max_episode_steps=limit))
    env.reset()
    steps = [env.step(np.zeros(3, int)) for _ in range(n)]
    assert [s.done for s in steps] == [False] * (n - 1) + [True]
    assert steps[-1].info.get("truncated", False) is truncated
    assert steps[-1].obs["alive"].tolist() == ([1, 0, 1] if truncated else [0, 0, 0])


def test_other_layouts() -> None:
    env = ParallelAgentsEnv(Trio, dict(agent_obs_only=True, reward="mean"))
    assert env.reset().shape == env.observation_space.shape == (3, 2)
    assert env.step(np.array([1, 1, 1])).reward == 37
    env = ParallelAgentsEnv(Trio, dict(agent_specific_global_state=True))
    assert env.reset()["global_state"][1].tolist() == [10, 10, 0, 0, 10, 10, 20, 20]


def test_agents_that_differ_are_padded_where_asked() -> None:
    def make() -> Trio:
        return Trio(dict(a=2, b=1, c=2))

    with pytest.raises(ConfigError, match=r"act in .*, but they share one network; set env.pad"):
        _ = ParallelAgentsEnv(make).action_space
    obs = ParallelAgentsEnv(make, dict(pad_agents=True)).reset()
    assert obs["agent_state"].tolist() == [[0, 0], [10, 0], [20, 20]]
    assert obs["action_mask"].tolist() == [[1, 0, 1], [1, 1, 0], [1, 1, 1]]
    assert obs["global_state"].tolist() == [0, 0, 10, 20, 20]


def test_unknown_reward_is_named() -> None:
    with pytest.raises(ConfigError, match=r"env.reward = 'means'; did you mean 'mean'"):
        ParallelAgentsEnv(Trio, dict(reward="means"))


@pytest.mark.parametrize(
    "manager", [dict(type="base"), dict(type="subprocess", envs_per_worker=1), dict(type="thread")]
)
def test_one_env_to_every_manager(manager: dict[str, Any]) -> None:
    envs = create_env_manager(manager, [lambda: ParallelAgentsEnv(Trio, dict(reward="each"))] * 2)
    with envs:
        envs.launch()
        assert envs.action_space == AgentsSpace(gym.spaces.Discrete(3), 3)
        assert envs.ready_obs[1]["agent_state"].shape == (3, 2)
        step = envs.step({0: np.array([1, 1, 1]), 1: np.array([0, 2, 0])})
        assert step[0].reward.tolist() == [1, 10, 100]
        assert step[1].reward.tolist() == [0, 20, 0]
        assert step[1].obs["agent_state"].tolist() == [[1, 1], [11, 11], [21, 21]]
