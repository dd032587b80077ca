"""PettingZoo's parallel envs by id: layout, reward scale, time limit, and what cannot be."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from ding.envs import AgentsSpace
from ding.envs.pettingzoo_env import PettingZooEnv
from ding.utils.errors import ConfigError, DingError


def spread(**cfg: Any) -> PettingZooEnv:
    env = PettingZooEnv({"env_id": "simple_spread_v2", **cfg})
    env.seed(0, dynamic_seed=False)
    return env


def test_simple_spread() -> None:
    env = spread(n_agent=3, n_landmark=3)
    obs = env.reset()
    assert {key: part.shape for key, part in obs.items()} == {
        "agent_state": (3, 18),
        "global_state": (54,),
        "action_mask": (3, 5),
        "alive": (3,),
    }
    assert env.observation_space.contains(obs)
    assert env.action_space == AgentsSpace(gym.spaces.Discrete(5), 3)
    assert np.array_equal(obs["global_state"], spread(fast=False).reset()["global_state"])
    assert np.array_equal(obs["agent_state"], spread().reset()["agent_state"])


@pytest.mark.parametrize("own_id", [False, True])
def test_agents_without_their_allies(own_id: bool) -> None:
    """Of the 18 numbers four are where the others are, behind own and landmarks' places."""
    env = spread(obs_alone=True, obs_agent_id=own_id)
    obs, more = env.reset(), 3 * own_id
    seen, alone = obs["agent_state"], obs["agent_alone_state"]
    assert alone.shape == (3, 14 + more) and env.observation_space.contains(obs)
    assert np.array_equal(alone, np.concatenate([seen[:, :10], seen[:, 14:]], axis=1))
    padded = obs["agent_alone_padding_state"]
    assert padded.shape == (3, 18 + more) and not padded[:, 10:14].any()
    assert np.array_equal(np.delete(padded, range(10, 14), axis=1), alone)
    assert seen[:, 10:14].all() and env.observation_space.contains(env.step([0, 1, 2]).obs)


def test_returns_on_the_documented_scale() -> None:
    """3 G + C is twice mpe2's own sum over the agents, 1.5 G + 0.5 C."""
    env = spread(reward_scale=2.0, fast=False)
    env.reset()
    world = env._env.unwrapped
    total, rng = 0.0, np.random.default_rng(0)
    for t in range(25):
        step = env.step(rng.integers(0, 5, 3))
        near = world.scenario.global_reward(world.world)
        bumps = sum(world.scenario.reward(agent, world.world) for agent in world.world.agents)
        assert step.reward == pytest.approx(3 * near + bumps)
        total += step.reward
        assert step.done is (t == 24)
    assert step.info["eval_episode_return"] == pytest.approx(total)
    assert step.info["truncated"] is True, "the limit is no end of the task"
    assert step.obs["alive"].all()


def test_continuous_actions() -> None:
    env = spread(continuous_actions=True, act_scale=True, n_agent=4, max_cycles=3)
    obs = env.reset()
    assert "action_mask" not in obs and obs["agent_state"].shape == (4, 24)
    assert env.action_space == AgentsSpace(gym.spaces.Box(-1, 1, (5,)), 4)
    assert [env.step(env.random_action()).done for _ in range(3)] == [False, False, True]


def test_agents_of_different_kinds() -> None:
    with pytest.raises(
        ConfigError, match=r"simple_speaker_listener_v3\) act in .*, but they share"
    ):
        _ = PettingZooEnv({"env_id": "simple_speaker_listener_v3"}).action_space
    env = PettingZooEnv({"env_id": "simple_speaker_listener_v3", "pad_agents": True})
    obs = env.reset()
    assert obs["agent_state"].shape == (2, 11) and obs["global_state"].shape == (14,)
    assert obs["action_mask"].tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (
            dict(env_id="simple_spred_v3"),
            r"env_id = 'simple_spred_v3' of family 'mpe'; did you mean",
        ),
        (dict(n_landmark=2), r"env.n_landmark = 2, but there are as many landmarks as agents"),
        (dict(env_id="simple_tag_v2", n_agent=4), r"env.n_agent = 4: .* set env.env_kwargs"),
        (dict(env_family="mppe"), r"env.env_family = 'mppe'"),
        (
            dict(env_id="simple_reference_v3", obs_alone=True),
            r"obs_alone = True: env.ally_feature_range = None does not .* within 21 numbers",
        ),
        (dict(obs_alone=True, ally_feature_range=[4, 99]), r"ally_feature_range = \[4, 99\]"),
        (dict(obs_alone=True, agent_obs_only=True), r"set one of them to False"),
    ],
)
def test_bad_input(cfg: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spread(**cfg).reset()


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpe2", None)
    with pytest.raises(
        DingError, match=r"needs mpe2; install it with: pip install .*\[pettingzoo\]"
    ):
        spread().reset()
