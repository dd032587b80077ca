"""Demonstrations as values: episodes, steps, returns, and what they are refused for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from ding.data.demo_summary import no_better_than_random, summary
from ding.data.demonstrations import Demonstrations, Origin, joined
from ding.utils.batch import Rows
from ding.utils.errors import DemonstrationError

OBS = spaces.Box(-10, 10, (1,), np.float32)


def steps(n: int, first: float = 0.0, **other: Any) -> Rows:
    """Observations first, first + 1, ...; rewards 1, 2, ...; terminated at the end."""
    obs = (first + np.arange(n + 1, dtype=np.float32))[:, None]
    columns = {
        "obs": obs[:-1],
        "action": np.arange(n) % 2,
        "reward": np.arange(1, n + 1, dtype=np.float32),
        "next_obs": obs[1:],
        "done": np.arange(n) == n - 1,
    }
    return Rows({**columns, **other})


def two_episodes(**origin: Any) -> Demonstrations:
    """Of 2 and 3 steps: returns 3 and 6."""
    known = Origin(env_id="Line-v0", obs_space=OBS, action_space=spaces.Discrete(2), name="d")
    cut = steps(3, 5.0, truncated=np.array([False, False, True]))
    parts = [Demonstrations.of_steps(steps(2), known), Demonstrations.of_steps(cut, known)]
    made = joined(parts)
    return Demonstrations(
        made.columns, made.lengths, made.final_obs, Origin(**{**vars(known), **origin})
    )


def test_returns_lengths_and_steps() -> None:
    demos = two_episodes()
    assert (demos.n_step, demos.n_episode) == (5, 2)
    assert demos.lengths.tolist() == [2, 3]
    assert demos.returns.tolist() == [3.0, 6.0]
    rows = demos.steps().columns
    assert rows["next_obs"][:, 0].tolist() == [1, 2, 6, 7, 8]
    assert rows["done"].tolist() == [False, True, False, False, True]
    assert rows["truncated"].tolist() == [False, False, False, False, True]
    assert rows["episode_id"].tolist() == [0, 0, 1, 1, 1]
    assert rows["episode_step"].tolist() == [0, 1, 0, 1, 2]


def test_some_of_the_episodes() -> None:
    last = two_episodes().episodes([1])
    assert last.columns["obs"][:, 0].tolist() == [5, 6, 7]
    assert last.final_obs[:, 0].tolist() == [8]
    assert last.steps().columns["episode_id"].tolist() == [0, 0, 0]


def test_steps_that_do_not_follow_end_an_episode() -> None:
    """Samples of several envs, one after the other: the first piece is cut off."""
    a, b = steps(3).columns, steps(2, 7.0).columns
    columns = {key: np.concatenate([a[key][:2], b[key]]) for key in a}
    demos = Demonstrations.of_steps(Rows(columns))
    assert demos.lengths.tolist() == [2, 2]
    assert demos.columns["truncated"].tolist() == [False, True, False, False]
    assert demos.columns["terminated"].tolist() == [False, False, False, True]


def test_numbers_as_others_write_them() -> None:
    rows = [
        {**row, "action": np.array([1]), "reward": np.array([2.0]), "obs": np.array([0.5])}
        for row in steps(2)
    ]
    rows[0]["next_obs"] = np.array([0.5])
    demos = Demonstrations.of_steps(rows)
    assert demos.columns["action"].shape == demos.columns["reward"].shape == (2,)
    assert demos.columns["obs"].dtype == demos.columns["reward"].dtype == np.float32
    assert demos.lengths.tolist() == [2]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"obs": np.array([[0.0], [np.nan], [2.0]], np.float32)}, "NaN or infinite numbers: obs of st"),
    ({"action": np.array([0.0, np.inf, 1.0])}, "NaN or infinite numbers: action of step 1"),
    ({"reward": np.ones((3, 4), np.float32)}, "samples of 4 steps"),
    ({"obs": np.array(["a", "b", "c"])}, "obs is not numbers"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_columns_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DemonstrationError, match=message):
        Demonstrations.of_steps(steps(3, **change), Origin(name="mine"))


def test_missing_columns_and_broken_episodes_are_refused() -> None:
    lacking = {k: v for k, v in steps(3).columns.items() if k != "next_obs"}
    with pytest.raises(DemonstrationError, match="without next_obs"):
        Demonstrations.of_steps(Rows(lacking))
    good = two_episodes()
    with pytest.raises(DemonstrationError, match="an episode without an end"):
        Demonstrations(good.columns, np.array([3, 2]), good.final_obs)
    with pytest.raises(DemonstrationError, match="5 steps, but episodes of 4"):
        Demonstrations(good.columns, np.array([2, 2]), good.final_obs)
    with pytest.raises(DemonstrationError, match="1 final observations for 2"):
        Demonstrations(good.columns, good.lengths, good.final_obs[:1])
    with pytest.raises(DemonstrationError, match="no steps"):
        Demonstrations.of_episodes([])


def test_another_env_or_space_is_refused() -> None:
    demos, two = two_episodes(), spaces.Discrete(2)
    demos.check(OBS, two, "Line-v0")
    demos.check(OBS, two, None)
    wide = spaces.Box(-10, 10, (2,), np.float32)
    with pytest.raises(DemonstrationError, match=r"'Line-v0', but the run's env is 'Ring-v0'"):
        demos.check(OBS, two, "Ring-v0")
    with pytest.raises(DemonstrationError, match=r"observations of Box.*\(1,\).*Box.*\(2,\)"):
        demos.check(wide, two, "Line-v0")
    with pytest.raises(DemonstrationError, match=r"actions of Discrete\(2\).*Discrete\(3\)"):
        demos.check(OBS, spaces.Discrete(3), "Line-v0")


def test_numbers_of_an_unknown_origin_are_compared_with_the_spaces() -> None:
    demos = two_episodes(obs_space=None, action_space=None, env_id=None)
    demos.check(OBS, spaces.Discrete(2), "Ring-v0")
    with pytest.raises(DemonstrationError, match="actions from 0 to 1, but the run's"):
        demos.check(OBS, spaces.Discrete(1), None)
    with pytest.raises(DemonstrationError, match="observations of dtype float32"):
        demos.check(spaces.Box(0, 255, (1,), np.uint8), spaces.Discrete(2), None)
    with pytest.raises(DemonstrationError, match=r"observations of shape \(1,\)"):
        demos.check(spaces.Box(0, 1, (3,), np.float32), spaces.Discrete(2), None)
    with pytest.raises(DemonstrationError, match="observations with the parts"):
        demos.check(spaces.Dict({"a": OBS}), spaces.Discrete(2), None)


def test_actions_of_another_scale_are_refused_and_mapped() -> None:
    torque, unit = (spaces.Box(-n, n, (1,), np.float32) for n in (2.0, 1.0))
    action = np.array([[-2.0], [1.0], [2.0]], np.float32)
    origin = Origin(action_space=torque, obs_space=OBS)
    demos = Demonstrations.of_steps(steps(3, action=action), origin)
    with pytest.raises(DemonstrationError, match=r"Box\(-2.0.*Box\(-1.0.*scaled_to"):
        demos.check(OBS, unit, None)
    scaled = demos.scaled_to(unit)
    scaled.check(OBS, unit, None)
    assert scaled.columns["action"][:, 0].tolist() == [-1.0, 0.5, 1.0]
    with pytest.raises(DemonstrationError, match="do not scale"):
        two_episodes().scaled_to(unit)


def test_an_expert_like_random_actions_is_told() -> None:
    assert no_better_than_random(two_episodes(random_returns=(0.0, 0.1))) is None
    told = no_better_than_random(two_episodes(random_returns=(4.0, 4.0)))
    assert told is not None
    assert "return 4.50 over 2 episodes, random actions 4.00 over 2" in told


def test_summary() -> None:
    page = summary(two_episodes(random_returns=(4.0, 4.0)))
    for line in (
        "episodes   2, 5 steps; 1 terminated, 1 truncated",
        "return     mean 4.50, std 1.50, min 3.00, max 6.00",
        "length     mean 2.50, std 0.50, min 2.00, max 3.00",
        "WARNING    no better than random",
        "  0  60.0% ####",
        "  1  40.0% ####",
    ):
        assert line in page
    assert max(map(len, page.splitlines())) <= 80
