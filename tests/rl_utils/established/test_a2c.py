import math

import pytest
import torch

from ding.rl_utils import a2c_data, a2c_error, a2c_error_continuous

PROBS = torch.tensor([[0.25, 0.75], [0.5, 0.5]])


def test_discrete_by_hand():
    data = a2c_data(
        PROBS.log(),
        torch.tensor([0, 1]),
        torch.tensor([1.0, 2.0]),
        torch.tensor([2.0, -1.0]),
        torch.tensor([3.0, 2.0]),
        None,
    )
    loss = a2c_error(data)
    assert loss.policy_loss.item() == pytest.approx(-(2 * math.log(0.25) - math.log(0.5)) / 2)
    assert loss.value_loss.item() == 2.0
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)), math.log(2)
    assert loss.entropy_loss.item() == pytest.approx(sum(entropy) / 2)
    weighted = a2c_error(data._replace(weight=torch.tensor([0.0, 2.0])))
    assert weighted.policy_loss.item() == pytest.approx(math.log(0.5))
    assert weighted.value_loss.item() == 0.0


def test_continuous_by_hand():
    logit = {"mu": torch.tensor([[0.0, 1.0]]), "sigma": torch.tensor([[1.0, 2.0]])}
    one, two, three = torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([3.0])
    data = a2c_data(logit, torch.tensor([[1.0, 1.0]]), one, two, three, None)
    loss = a2c_error_continuous(data)
    log_prob = -0.5 - math.log(2) - math.log(2 * math.pi)
    assert loss.policy_loss.item() == pytest.approx(-2 * log_prob)
    assert loss.value_loss.item() == 4.0
    entropy = 1 + math.log(2 * math.pi) + math.log(2)
    assert loss.entropy_loss.item() == pytest.approx(entropy)


def test_gradients():
    torch.manual_seed(0)
    action, adv, return_ = torch.tensor([0, 1, 1]), torch.randn(3).double(), torch.randn(3).double()

    def discrete(logit, value):
        return tuple(a2c_error(a2c_data(logit, action, value, adv, return_, None)))

    def continuous(mu, log_sigma, value):
        logit = {"mu": mu, "sigma": log_sigma.exp()}
        data = a2c_data(logit, torch.ones(3, 2).double(), value, adv, return_, None)
        return tuple(a2c_error_continuous(data))

    inputs = [torch.randn(*shape).double().requires_grad_() for shape in ((3, 2), (3, 2), (3,))]
    assert torch.autograd.gradcheck(discrete, inputs[1:])
    assert torch.autograd.gradcheck(continuous, inputs)
