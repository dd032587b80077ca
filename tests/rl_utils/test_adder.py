import numpy as np
import pytest
import torch

from ding.rl_utils import (
    get_gae,
    get_gae_with_default_last_value,
    get_nstep_return_data,
    get_train_sample,
    nstep_transitions,
)
from ding.utils.batch import Rows


def steps(n, done=(), truncated=(), end=()):
    """Observation t leads to t + 0.5; reward t + 1."""
    t = np.arange(n, dtype=np.float32)

    def flags(rows):
        return np.isin(np.arange(n), list(rows))

    return {
        "obs": t,
        "next_obs": t + 0.5,
        "action": np.arange(n) * 10,
        "reward": t + 1,
        "done": flags(done),
        "truncated": flags(truncated),
        "end": flags({*done, *end}),
    }


def test_one_step():
    given = steps(3, done=[1, 2], truncated=[2])
    result = nstep_transitions(given, 1, 0.9)
    np.testing.assert_allclose(result["discount"], [0.9, 0.0, 0.9])
    assert result["discount"].dtype == np.float32
    assert result["done"].tolist() == [False, True, False]
    assert result["next_obs"] is given["next_obs"] and result["reward"] is given["reward"]
    assert given["done"].tolist() == [False, True, True] and "discount" not in given


def test_n_steps_stop_at_the_end_of_each_piece():
    # rows 0-2 end by termination, 3-4 by a limit, 5-7 are cut by the collector
    given = steps(8, done=[2, 4], truncated=[4], end=[7])
    result = nstep_transitions(given, 2, 0.5)
    assert result["reward"].tolist() == [2.0, 3.5, 3.0, 6.5, 5.0, 9.5, 11.0, 8.0]
    assert result["next_obs"].tolist() == [1.5, 2.5, 2.5, 4.5, 4.5, 6.5, 7.5, 7.5]
    assert result["discount"].tolist() == [0.25, 0.0, 0.0, 0.25, 0.5, 0.25, 0.25, 0.5]
    assert result["done"].tolist() == [False, True, True, False, False, False, False, False]
    assert result["obs"] is given["obs"] and result["action"] is given["action"]


def test_n_steps_of_nested_observations():
    given = steps(3, end=[2])
    given["next_obs"] = {"a": given["next_obs"], "b": np.ones((3, 2))}
    result = nstep_transitions(given, 5, 1.0)
    assert result["next_obs"]["a"].tolist() == [2.5, 2.5, 2.5]
    assert result["reward"].tolist() == [6.0, 5.0, 3.0]
    assert result["reward"].dtype == np.float32


def test_last_row_ends_without_saying_so_and_truncated_may_be_missing():
    given = steps(2, done=[1])
    given["end"][:] = False
    del given["truncated"]
    assert nstep_transitions(given, 3, 0.5)["discount"].tolist() == [0.0, 0.0]


def test_rewards_of_several_agents():
    given = steps(3, end=[2]) | {"reward": np.array([[1, 10], [2, 20], [4, 40]], np.float32)}
    assert nstep_transitions(given, 2, 0.5)["reward"].tolist() == [[2, 20], [4, 40], [4, 40]]


def test_nstep_must_be_positive():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        nstep_transitions(steps(2), 0, 0.9)


def rows_of(columns):
    """The same trajectory as plain dicts of numbers and as `Rows`."""
    n = len(columns["obs"])
    plain = [{key: torch.as_tensor(value[i]) for key, value in columns.items()} for i in range(n)]
    return [plain, Rows(columns)]


def column(rows, key):
    return torch.stack([torch.as_tensor(row[key]) for row in rows]).tolist()


def trajectory(n, done=(), truncated=None):
    columns = steps(n, done, truncated or ())
    del columns["end"]
    if truncated is None:
        del columns["truncated"]
    return columns


@pytest.mark.parametrize("kind", [0, 1])
def test_nstep_rows(kind):
    data = rows_of(trajectory(4, done=[3]))[kind]
    result = get_nstep_return_data(data, 2, gamma=0.5)
    assert column(result, "reward") == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0], [4.0, 0.0]]
    assert column(result, "next_obs") == [1.5, 2.5, 3.5, 3.5]
    assert column(result, "done") == [False, False, True, True]
    assert column(result, "value_gamma") == [0.25, 0.25, 0.25, 0.5]
    assert column(data, "reward") == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("kind", [0, 1])
def test_nstep_rows_summed(kind):
    data = rows_of(trajectory(3))[kind]
    result = get_nstep_return_data(
        data, 2, cum_reward=True, correct_terminate_gamma=False, gamma=0.5
    )
    assert column(result, "reward") == [2.0, 3.5, 3.0]
    assert "value_gamma" not in result[0]


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("nstep", [1, 3])
def test_nstep_rows_truncated_is_not_done(kind, nstep):
    data = rows_of(trajectory(2, done=[1], truncated=[1]))[kind]
    assert column(get_nstep_return_data(data, nstep), "done") == [False, False]


def test_nstep_one_leaves_the_rows():
    data = rows_of(trajectory(2, done=[1]))[0]
    assert get_nstep_return_data(data, 1) is data
    assert get_nstep_return_data([], 3) == []


def gae_rows(n=3, done=(), **more):
    columns = {
        "obs": np.zeros(n, np.float32),
        "value": np.arange(1, n + 1, dtype=np.float32),
        "reward": np.ones(n, np.float32),
        "done": np.isin(np.arange(n), list(done)),
        **more,
    }
    return rows_of(columns)


@pytest.mark.parametrize("kind", [0, 1])
def test_get_gae(kind):
    data = gae_rows()[kind]
    # deltas 1 + 0.5 * next - value = 1, 0.5, 0 with last value 4
    result = get_gae(data, torch.tensor(4.0), gamma=0.5, gae_lambda=0.5)
    assert column(result, "adv") == [1.125, 0.5, 0.0]
    assert "adv" not in data[0]


def test_get_gae_done_and_truncated():
    done = get_gae(gae_rows(done=[2])[0], 4.0, 0.5, 0.5)
    assert column(done, "adv") == [1.0, 0.0, -2.0]
    limit = gae_rows(done=[2], truncated=np.array([False, False, True]))[0]
    assert column(get_gae(limit, 4.0, 0.5, 0.5), "adv") == [1.125, 0.5, 0.0]
    flagged = gae_rows(traj_flag=np.array([True, False, False]))[0]
    assert column(get_gae(flagged, 4.0, 0.5, 0.5), "adv") == [1.0, 0.5, 0.0]


def test_get_gae_of_shaped_rewards_and_values():
    data = gae_rows(reward=np.ones((3, 1), np.float32))[0]
    assert column(get_gae(data, 4.0, 0.5, 0.5), "adv") == [1.125, 0.5, 0.0]
    two = gae_rows(value=np.array([[1, 1], [2, 2], [3, 3]], np.float32))[0]
    result = get_gae(two, torch.tensor([4.0, 6.0]), 0.5, 0.5)
    assert column(result, "adv") == [[1.125, 1.1875], [0.5, 0.75], [0.0, 1.0]]


@pytest.mark.parametrize("kind", [0, 1])
def test_get_gae_with_default_last_value(kind):
    data = gae_rows()[kind]
    assert column(get_gae_with_default_last_value(data, True, 0.5, 0.5), "adv")[-1] == -2.0
    shorter = get_gae_with_default_last_value(data, False, 0.5, 0.5)
    assert column(shorter, "adv") == [1.125, 0.5]
    assert get_gae_with_default_last_value([], True, 0.5, 0.5) == []


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(
    ("last_fn_type", "expected"),
    [
        ("drop", [[0, 1], [2, 3]]),
        ("last", [[0, 1], [2, 3], [3, 4]]),
        ("null_padding", [[0, 1], [2, 3], [4, 0]]),
    ],
)
def test_train_sample_pieces(kind, last_fn_type, expected):
    sample = get_train_sample(rows_of(trajectory(5))[kind], 2, last_fn_type)
    assert [piece["obs"].tolist() for piece in sample] == expected
    assert ("null" in sample[0]) == (last_fn_type == "null_padding")


def test_train_sample_padding_is_marked():
    sample = get_train_sample(rows_of(trajectory(3))[0], 2, "null_padding")
    assert [piece["null"].tolist() for piece in sample] == [[False, False], [False, True]]
    assert sample[-1]["done"].tolist() == [False, True]
    null = {"obs": np.float32(9), "reward": np.float32(7)}
    given = get_train_sample(rows_of(trajectory(3))[0], 2, "null_padding", null)
    assert given[-1]["obs"].tolist() == [2.0, 9.0] and given[-1]["reward"].tolist() == [3.0, 7.0]


def test_train_sample_shorter_than_a_piece():
    data = rows_of(trajectory(1))[0]
    assert get_train_sample(data, 3, "drop") == []
    assert get_train_sample(data, 3, "last")[0]["null"].tolist() == [False, True, True]


def test_train_sample_of_one_leaves_the_rows():
    data = rows_of(trajectory(3))[0]
    assert get_train_sample(data, 1) is data
    with pytest.raises(ValueError, match="did you mean 'last'"):
        get_train_sample(data, 2, "lasst")
