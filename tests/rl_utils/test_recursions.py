"""Properties of returns that hold for any numbers: ends of episodes, time limits, linearity."""

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ding.rl_utils import (
    gae,
    gae_data,
    generalized_lambda_returns,
    nstep_transitions,
    upgo_returns,
    vtrace_nstep_return,
)
from ding.rl_utils.gae import flat_advantages


def flat(reward, value, next_value, terminated, end, gamma, lambda_=0.95):
    discount, decay = np.where(terminated, 0.0, gamma), np.where(end, 0.0, gamma * lambda_)
    return flat_advantages(reward, value, next_value, discount=discount, decay=decay)


NUMBER = st.floats(-10, 10, width=32)
FRACTION = st.floats(0, 1, width=32)
quick = settings(max_examples=40, deadline=None)


@st.composite
def trajectories(draw, longest=24):
    """Value (T + 1,), reward (T,), done (T,) and end (T,), where an episode or a piece ends."""
    steps = draw(st.integers(1, longest))
    columns = hnp.arrays(np.float32, steps, elements=NUMBER)
    value = draw(hnp.arrays(np.float32, steps + 1, elements=NUMBER))
    done, cut = (draw(hnp.arrays(bool, steps)) for _ in range(2))
    return value, draw(columns), done, done | cut


def tensors(*arrays):
    return [torch.from_numpy(np.asarray(x)).double().unsqueeze(1) for x in arrays]


@given(trajectories(), FRACTION, FRACTION)
@quick
def test_gae_is_the_sum_of_discounted_errors(trajectory, gamma, lambda_):
    value, reward, done, end = trajectory
    now, following, *rest = tensors(value[:-1], value[1:], reward, done, end)
    found = gae(gae_data(now, following, *rest), gamma, lambda_).flatten().numpy()
    value, reward = value.astype(np.float64), reward.astype(np.float64)
    for t in range(len(reward)):
        expected, factor = 0.0, 1.0
        for k in range(t, len(reward)):
            expected += factor * (reward[k] + gamma * value[k + 1] * (not done[k]) - value[k])
            factor *= gamma * lambda_
            if end[k]:
                break
        np.testing.assert_allclose(found[t], expected, atol=1e-6)


@given(trajectories(), FRACTION, FRACTION)
@quick
def test_flat_advantages_are_those_of_the_pieces(trajectory, gamma, lambda_):
    value, reward, done, end = trajectory
    found = flat(reward, value[:-1], value[1:], done, end, gamma, lambda_)
    starts = [0, *(np.flatnonzero(end) + 1).tolist(), len(reward)]
    for a, b in pairwise(starts):
        if a < b:
            piece = (reward[a:b], value[a:b], value[a + 1 : b + 1], done[a:b], end[a:b])
            np.testing.assert_array_equal(found[a:b], flat(*piece, gamma, lambda_))


@given(trajectories(), FRACTION)
@quick
def test_terminated_forgets_the_future_and_truncated_only_its_rewards(trajectory, gamma):
    value, reward, _, _ = trajectory
    terminated, no = np.ones(len(reward), bool), np.zeros(len(reward), bool)
    ended = flat(reward, value[:-1], value[1:], terminated, terminated, gamma)
    np.testing.assert_allclose(ended, reward - value[:-1], atol=1e-4)
    truncated = flat(reward, value[:-1], value[1:], no, terminated, gamma)
    np.testing.assert_allclose(truncated, reward + gamma * value[1:] - value[:-1], atol=1e-4)


@given(trajectories(), FRACTION, FRACTION)
@quick
def test_lambda_returns_are_gae_plus_value(trajectory, gamma, lambda_):
    value, reward, done, _ = trajectory
    v, r, d = tensors(value, reward, done)
    advantage = gae(gae_data(v[:-1], v[1:], r, d, None), gamma, lambda_)
    returns = generalized_lambda_returns(v, r, gamma, lambda_, d)
    torch.testing.assert_close(returns, advantage + v[:-1], atol=1e-6, rtol=1e-6)


@given(trajectories(), FRACTION, FRACTION)
@quick
def test_on_policy_vtrace_is_the_lambda_return(trajectory, gamma, lambda_):
    value, reward = tensors(*trajectory[:2])
    one = torch.ones_like(reward)
    found = vtrace_nstep_return(one, one, reward, value, gamma, lambda_)
    expected = generalized_lambda_returns(value, reward, gamma, lambda_)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


@given(trajectories())
@quick
def test_upgo_is_never_below_the_one_step_return(trajectory):
    value, reward = tensors(*trajectory[:2])
    # A trajectory is followed only from where it is at least as good as the value there.
    assert (upgo_returns(reward, value) >= reward + value[1:] - 1e-9).all()


@given(trajectories(), trajectories(), FRACTION, FRACTION)
@quick
def test_lambda_returns_are_linear(one, other, gamma, lambda_):
    steps = min(len(one[1]), len(other[1]))
    (v, r), (w, s) = (tensors(x[0][: steps + 1], x[1][:steps]) for x in (one, other))
    total = generalized_lambda_returns(v + 2 * w, r + 2 * s, gamma, lambda_)
    parts = [generalized_lambda_returns(*x, gamma, lambda_) for x in ((v, r), (w, s))]
    torch.testing.assert_close(total, parts[0] + 2 * parts[1], atol=1e-6, rtol=1e-6)


@given(trajectories(), st.integers(1, 8), FRACTION)
@quick
def test_nstep_never_crosses_the_end_of_a_piece(trajectory, nstep, gamma):
    value, reward, done, end = trajectory
    n = len(reward)
    truncated = done & (value[:-1] > 0)
    steps = {
        "next_obs": np.arange(1, n + 1), "reward": reward, "done": done,
        "truncated": truncated, "end": end,
    }  # fmt: skip
    found = nstep_transitions(steps, nstep, gamma)
    for t in range(n):
        k = next((k for k in range(t, min(t + nstep, n)) if end[k]), min(t + nstep, n) - 1)
        used = np.float64(gamma) ** np.arange(k - t + 1) * reward[t : k + 1]
        np.testing.assert_allclose(found["reward"][t], used.sum(), atol=1e-4)
        terminated = done[k] and not truncated[k]
        expected = 0.0 if terminated else np.float64(gamma) ** (k - t + 1)
        np.testing.assert_allclose(found["discount"][t], expected, atol=1e-6)
        assert found["done"][t] == terminated and found["next_obs"][t] == k + 1
