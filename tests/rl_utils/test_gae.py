import numpy as np
import pytest
import torch

from ding.rl_utils import gae, gae_data
from ding.rl_utils.gae import flat_advantages, generalized_advantages

VALUE, NEXT_VALUE, REWARD = [1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [1.0, 1.0, 1.0]


def test_termination_zeroes_the_value_and_the_end_of_a_piece_the_trace():
    reward, value, next_value = torch.tensor([REWARD, VALUE, NEXT_VALUE])
    discount, decay = torch.tensor([0.5, 0.0, 0.5]), torch.tensor([0.25, 0.0, 0.0])
    # deltas 1, -1, 0
    found = generalized_advantages(reward, discount, value, next_value, decay)
    assert found.tolist() == [0.75, -1.0, 0.0]


def advantages(reward, value, next_value, terminated, end, gamma=0.99, lambda_=0.95):
    discount, decay = np.where(terminated, 0.0, gamma), np.where(end, 0.0, gamma * lambda_)
    return flat_advantages(reward, value, next_value, discount=discount, decay=decay)


def flat(terminated, end):
    columns = [np.array(c, dtype=np.float32) for c in (REWARD, VALUE, NEXT_VALUE)]
    return advantages(*columns, terminated, end, 0.5, 0.5)


def test_flat_advantages_by_hand():
    assert flat([0, 0, 0], [0, 0, 1]).tolist() == [1.125, 0.5, 0.0]
    assert flat([0, 1, 0], [0, 1, 1]).tolist() == [0.75, -1.0, 0.0]


def test_flat_truncation_cuts_but_bootstraps():
    assert flat([0, 0, 0], [1, 0, 1]).tolist() == [1.0, 0.5, 0.0]
    assert flat([0, 0, 0], [1, 0, 1]).dtype == np.float32


@pytest.mark.parametrize("seed", range(3))
def test_flat_agrees_with_the_torch_version(seed):
    rng = np.random.default_rng(seed)
    reward, value, next_value = rng.standard_normal((3, 200)).astype(np.float32)
    end = rng.random(200) < 0.1
    terminated = end & (rng.random(200) < 0.5)
    tensors = [torch.from_numpy(c) for c in (value, next_value, reward, terminated, end)]
    expected = gae(gae_data(*tensors), 0.99, 0.95).numpy()
    actual = advantages(reward, value, next_value, terminated, end, 0.99, 0.95)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
