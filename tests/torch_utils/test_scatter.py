import pytest
import torch

from ding.torch_utils import ScatterConnection, SoftArgmax
from ding.utils.errors import ConfigError

X = torch.tensor([[[1.0], [2.0], [4.0]]], requires_grad=True)
PLACE = torch.tensor([[[0, 1], [1, 2], [0, 1]]])


def test_adding_and_covering():
    added = ScatterConnection("add")(X, (2, 3), PLACE)
    assert added.tolist() == [[[[0, 5, 0], [0, 0, 2]]]]
    covered = ScatterConnection("cover")(X, (2, 3), PLACE)
    assert covered.tolist() == [[[[0, 4, 0], [0, 0, 2]]]]
    (grad,) = torch.autograd.grad(covered.sum(), X)
    assert grad.flatten().tolist() == [0, 1, 1]


def test_coordinates_on_their_own():
    scatter = ScatterConnection("add")
    apart = scatter.xy_forward(X, (2, 3), PLACE[..., 1], PLACE[..., 0])
    assert torch.equal(apart, scatter(X, (2, 3), PLACE))
    with pytest.raises(ConfigError, match="did you mean 'cover'"):
        ScatterConnection("covr")


def test_soft_argmax():
    x = torch.zeros(2, 1, 3, 4)
    x[0, 0, 2, 1] = 50.0
    assert torch.allclose(SoftArgmax()(x), torch.tensor([[2.0, 1.0], [1.0, 1.5]]))
