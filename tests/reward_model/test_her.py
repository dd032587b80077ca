"""Hindsight: goals, rewards and ends of relabelled steps, by hand."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from ding.policy.config import HerConfig
from ding.reward_model import HerRewardModel, HindsightGoals
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError
from ding.worker import AdvancedReplayBuffer, NaiveReplayBuffer

PLACE = gym.spaces.Box(0, 100, (1,), dtype=np.float32)
SPACE = gym.spaces.Dict(observation=PLACE, achieved_goal=PLACE, desired_goal=PLACE)


class Line:
    """A walk to the right: place t + 1 after step t; 0 at the goal, else -1."""

    observation_space = SPACE

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return -(np.abs(achieved - desired)[..., 0] > 0.5).astype(np.float32)

    def close(self) -> None: ...


class EndingLine(Line):
    def compute_terminated(self, achieved: Any, desired: Any, info: Any) -> Any:
        return np.abs(achieved - desired)[..., 0] < 0.5


def episode(number: int, n: int, truncated: bool = True) -> dict[str, Any]:
    """Places 100 * number + t, with a goal far away."""
    place = (np.arange(n + 1, dtype=np.float32) + 100 * number)[:, None]

    def obs(rows: slice) -> dict[str, Any]:
        goal = np.full((n, 1), 9999, np.float32)
        return dict(observation=place[rows], achieved_goal=place[rows], desired_goal=goal)

    last = np.arange(n) == n - 1
    return dict(
        obs=obs(slice(0, n)),
        next_obs=obs(slice(1, n + 1)),
        action=np.zeros(n, np.int64),
        reward=np.full(n, -1, np.float32),
        done=last,
        truncated=last & truncated,
        episode_id=np.full(n, number),
        episode_step=np.arange(n),
    )


def drawn(env: Any, kind: Any = NaiveReplayBuffer, nstep: int = 1, **her: Any) -> dict[str, Any]:
    """2,040 rows of two episodes of 10 and 5 steps."""
    options = dict(replay_buffer_size=64, nstep=nstep, discount_factor=0.5, links=True)
    buffer = kind(options)
    buffer._rng = np.random.default_rng(0)
    for number, n in ((0, 10), (1, 5)):
        buffer.push(Rows(episode(number, n)))
    part = HindsightGoals.for_env(her, lambda cfg: env, {})
    rows = [buffer.sample(15, relabel=part).columns for _ in range(136)]
    return {
        "at": np.concatenate([r["obs"]["observation"][:, 0] for r in rows]),
        "goal": np.concatenate([r["obs"]["desired_goal"][:, 0] for r in rows]),
        "next_goal": np.concatenate([r["next_obs"]["desired_goal"][:, 0] for r in rows]),
        "next": np.concatenate([r["next_obs"]["observation"][:, 0] for r in rows]),
        **{
            name: np.concatenate([r[name] for r in rows])
            for name in ("reward", "done", "discount")
            if name in rows[0]
        },
    }


@pytest.mark.parametrize("kind", [NaiveReplayBuffer, AdvancedReplayBuffer])
def test_future_goals_are_reached_at_or_after_the_step(kind: Any) -> None:
    found = drawn(EndingLine(), kind, her_strategy="future", her_replay_k=4)
    new = found["goal"] != 9999
    assert abs(new.mean() - 0.8) < 0.06  # four of five
    ahead = (found["goal"] - found["at"])[new]
    last = np.where(found["at"] < 100, 10, 105)[new]
    assert ahead.min() == 1 and (found["goal"][new] <= last).all()
    first = new & (found["at"] == 0)
    assert set(found["goal"][first].tolist()) == set(range(1, 11))
    assert (found["goal"] == found["next_goal"]).all()
    reached = np.where(new, ahead_of(found) == 1, False)
    assert (found["reward"] == np.where(reached, 0, -1)).all()
    assert (found["done"] == reached).all()
    assert (found["discount"] == np.where(reached, 0, np.float32(0.5))).all()


def ahead_of(found: dict[str, Any]) -> np.ndarray:
    return found["goal"] - found["at"]


def test_final_goals_are_where_the_episode_ended() -> None:
    found = drawn(EndingLine(), her_strategy="final", her_replay_k=4)
    new = found["goal"] != 9999
    assert (found["goal"][new] == np.where(found["at"] < 100, 10, 105)[new]).all()


def test_goals_of_the_episode_may_lie_behind() -> None:
    found = drawn(EndingLine(), her_strategy="episode", her_replay_k=4)
    at_five = found["goal"][(found["at"] == 5) & (found["goal"] != 9999)]
    assert set(at_five.tolist()) == set(range(1, 11))


def test_no_relabelling_with_k_zero() -> None:
    assert (drawn(EndingLine(), her_replay_k=0)["goal"] == 9999).all()


def test_a_chain_has_one_goal_and_ends_where_it_is_reached() -> None:
    found = drawn(EndingLine(), nstep=3, her_strategy="future", her_replay_k=4)
    new = found["goal"] != 9999
    steps = ahead_of(found)[new]
    gamma = 0.5
    left = np.where(found["at"] < 100, 10, 105)[new] - found["at"][new]
    for ahead, reward, discount, rest in zip(
        steps, found["reward"][new], found["discount"][new], left, strict=True
    ):
        n = int(min(3, ahead, rest))
        ends = ahead <= 3
        assert reward == -sum(gamma**k for k in range(n - 1)) - (not ends) * gamma ** (n - 1)
        assert discount == (0 if ends else gamma**n)


def test_an_env_that_goes_on_at_its_goal() -> None:
    found = drawn(Line(), her_replay_k=4)
    assert not found["done"].any()  # the time limit alone ended these episodes
    assert (found["discount"] == np.float32(0.5)).all()


def test_ends_that_nothing_explains_are_refused() -> None:
    buffer = NaiveReplayBuffer(dict(replay_buffer_size=64, links=True, discount_factor=0.5))
    buffer.push(Rows(episode(0, 10, truncated=False)))
    part = HindsightGoals.for_env({}, lambda cfg: Line(), {})
    with pytest.raises(ConfigError, match="ends_at_goal"):
        buffer.sample(10, relabel=part)
    told = HindsightGoals.for_env(dict(ends_at_goal=True, her_replay_k=99), lambda cfg: Line(), {})
    rows = buffer.sample(10, relabel=told).columns
    reached = rows["reward"] == 0
    assert reached.any() and (rows["done"] == reached).all()


def test_a_function_for_single_rows_is_called_for_each(caplog: pytest.LogCaptureFixture) -> None:
    class OneByOne(EndingLine):
        def compute_reward(self, achieved: Any, desired: Any, info: Any) -> float:
            return 0.0 if float(abs(achieved - desired)[0]) < 0.5 else -1.0

    found = drawn(OneByOne(), her_replay_k=4)
    assert len([r for r in caplog.records if "takes no batches" in r.message]) == 1
    expected = drawn(EndingLine(), her_replay_k=4)
    assert found["reward"].tolist() == expected["reward"].tolist()


class Flat:
    observation_space = gym.spaces.Box(0, 1, (4,))

    def close(self) -> None: ...


class NoReward(Flat):
    observation_space = SPACE


@pytest.mark.parametrize(
    ("env", "her", "message"),
    [
        (Flat(), {}, "must be a Dict with"),
        (NoReward(), {}, "compute_reward"),
        (Line(), dict(her_strategy="futur"), "did you mean 'future'"),
        (Line(), dict(her_replay_k=-1), "her_replay_k = -1"),
        (Flat(), dict(split_func="a:b"), "merge_func is missing"),
        (
            Flat(),
            dict(split_func="no.such:f", merge_func="math:sin", goal_reward_func="math:sin"),
            r"her\.split_func = 'no\.such:f'",
        ),
    ],
)
def test_bad_settings_are_refused(env: Any, her: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HindsightGoals.for_env(her, lambda cfg: env, {})


def test_defaults_are_those_of_the_paper() -> None:
    assert (HerConfig().her_strategy, HerConfig().her_replay_k) == ("future", 4)


def bits(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


def test_episodes_by_hand() -> None:
    """Two bits: 00 -> 10 -> 11, asked for 01; the last goal is 11."""
    steps = [
        dict(obs=bits(0, 0, 0, 1), next_obs=bits(1, 0, 0, 1), reward=bits(0), done=False, action=0),
        dict(obs=bits(1, 0, 0, 1), next_obs=bits(1, 1, 0, 1), reward=bits(0), done=False, action=1),
    ]
    model = HerRewardModel(dict(her_strategy="final", her_replay_k=3))
    episodes = model.estimate(steps)
    assert len(episodes) == 3
    for one in episodes:
        assert [step["obs"].tolist() for step in one] == [[0, 0, 1, 1], [1, 0, 1, 1]]
        assert [step["reward"].tolist() for step in one] == [[0], [1]]
        assert [step["done"] for step in one] == [False, True]
    assert steps[0]["obs"].tolist() == [0, 0, 0, 1]  # what was given stays
    some = HerRewardModel(dict(her_strategy="future", sample_per_episode=5, episode_size=2))
    assert (some.episode_size, some.sample_per_episode) == (2, 5)
    assert [len(one) for one in some.estimate(steps)] == [5]
    with pytest.raises(ConfigError, match="her_strategy"):
        HerRewardModel(dict(her_replay_k=1))
