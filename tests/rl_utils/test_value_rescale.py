import math

import pytest
import torch

from ding.rl_utils import inv_symlog, symlog, value_inv_transform, value_transform


def test_value_transform_by_hand():
    x = torch.tensor([-3.0, 0.0, 8.0])
    assert value_transform(x, eps=0.1).tolist() == pytest.approx([-1.3, 0.0, 2.8])
    assert value_transform(x).tolist() == pytest.approx([-1.03, 0.0, 2.08])


@pytest.mark.parametrize("eps", [0.0, 1e-2, 0.5])
def test_value_transform_is_inverted(eps):
    x = torch.tensor([-1e4, -2.0, -1e-2, 0.0, 0.5, 300.0])
    there_and_back = value_inv_transform(value_transform(x, eps), eps)
    torch.testing.assert_close(there_and_back, x, rtol=1e-4, atol=1e-5)


def test_symlog():
    x = torch.tensor([-(math.e - 1), 0.0, math.e**2 - 1])
    assert symlog(x).tolist() == pytest.approx([-1.0, 0.0, 2.0])
    torch.testing.assert_close(inv_symlog(symlog(x)), x)


def test_gradients():
    x = torch.tensor([-3.0, -0.1, 0.2, 5.0], dtype=torch.float64, requires_grad=True)
    for transform in (value_transform, value_inv_transform, symlog, inv_symlog):
        assert torch.autograd.gradcheck(transform, x)
