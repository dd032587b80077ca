"""V-trace and Retrace over pieces of several episodes, against the sums of the papers."""

import numpy as np
import torch

from ding.rl_utils.retrace import retrace
from ding.rl_utils.vtrace import vtrace_advantage, vtrace_returns

STEPS = 12


def pieces():
    """Columns (T,); row 3 terminates, row 7 is truncated, what follows the last row is cut off."""
    rng = np.random.default_rng(0)
    row = np.arange(STEPS)
    end = np.isin(row, (3, 7, STEPS - 1))
    reward, value, last = rng.standard_normal((3, STEPS))
    next_value = np.where(end, last, np.roll(value, -1))
    discount = np.where(row == 3, 0.0, 0.9)
    return reward, discount, value, next_value, end, rng.random((2, STEPS))


def tensors(*arrays):
    return [torch.from_numpy(x) for x in arrays]


def test_vtrace_returns_are_the_sums_of_each_piece():
    reward, discount, value, next_value, end, (rho, c) = pieces()
    wanted = np.zeros(STEPS)
    for s in range(STEPS):
        wanted[s], factor = value[s], 1.0
        for t in range(s, STEPS):
            wanted[s] += factor * rho[t] * (reward[t] + discount[t] * next_value[t] - value[t])
            factor *= discount[t] * c[t]
            if end[t]:
                break
    columns = tensors(rho, np.where(end, 0.0, c), reward, discount, value, next_value)
    np.testing.assert_allclose(vtrace_returns(*columns), wanted)


def test_policy_is_weighed_by_the_return_of_the_next_step():
    rho, reward, next_v, value, discount = torch.rand(5, STEPS)
    wanted = rho * (reward + discount * next_v - value)
    torch.testing.assert_close(vtrace_advantage(rho, reward, next_v, value, discount), wanted)


def test_retrace_is_the_sum_of_each_piece():
    reward, discount, q, next_value, end, (ratio, _) = pieces()
    ratio = 2 * ratio
    wanted = np.zeros(STEPS)
    for s in range(STEPS):
        wanted[s], factor = q[s], 1.0
        for t in range(s, STEPS):
            wanted[s] += factor * (reward[t] + discount[t] * next_value[t] - q[t])
            if end[t]:
                break
            factor *= discount[t] * min(1.0, ratio[t + 1])
    found = retrace(*tensors(reward, discount, q, next_value, ratio, end))
    np.testing.assert_allclose(found, wanted)


def test_retrace_ends_with_the_last_row_whether_it_is_an_end_or_not():
    *columns, (ratio, _) = pieces()
    reward, discount, q, next_value, end, ratio = tensors(*columns, ratio)
    open_end = end.clone()
    open_end[-1] = False
    found = [retrace(reward, discount, q, next_value, ratio, flag) for flag in (end, open_end)]
    assert torch.equal(*found)
