import math

import pytest
import torch

from ding.rl_utils import compute_importance_weights


def test_discrete():
    target, behaviour = torch.tensor([[[0.5, 0.5]]]).log(), torch.tensor([[[0.2, 0.8]]]).log()
    action = torch.tensor([[0]])
    weight = compute_importance_weights(target + 3, behaviour, action)
    assert weight.shape == (1, 1) and weight.item() == pytest.approx(2.5)


def test_continuous():
    target = {"mu": torch.zeros(1, 1, 2), "sigma": torch.ones(1, 1, 2)}
    behaviour = {"mu": torch.ones(1, 1, 2), "sigma": torch.full((1, 1, 2), 2.0)}
    weight = compute_importance_weights(target, behaviour, torch.ones(1, 1, 2), "continuous")
    assert weight.item() == pytest.approx(4 * math.exp(-1))


def test_gradient_on_request():
    logit = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    other, action = torch.randn(2, 3, 4).double(), torch.randint(4, (2, 3))
    assert not compute_importance_weights(logit, other, action).requires_grad

    def weights(x):
        return compute_importance_weights(x, other, action, requires_grad=True)

    assert torch.autograd.gradcheck(weights, logit)


def test_wrong_kinds():
    with pytest.raises(ValueError, match="did you mean 'discrete'"):
        compute_importance_weights(torch.ones(1), torch.ones(1), torch.ones(1), "discret")
    with pytest.raises(TypeError, match="a continuous policy's output cannot be a Tensor"):
        compute_importance_weights(torch.ones(1), torch.ones(1), torch.ones(1), "continuous")
