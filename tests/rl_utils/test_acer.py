import math

import numpy as np
import pytest
import torch

from ding.rl_utils import acer_policy_error, acer_trust_region_update, acer_value_error


def one(x):
    return torch.tensor([[x]])


def test_policy_by_hand():
    # action 1: weight 4 clipped to 2, times (3 - 1) log 0.4
    # correction: action 0 has weight 0.5, below the clip; action 1 (1 - 2 / 4) 0.4 (5 - 1) log 0.4
    actor, correction = acer_policy_error(
        one([2.0, 5.0]), one([3.0]), one([1.0]), one([0.6, 0.4]), one(1), one([0.5, 4.0]), 2.0
    )
    assert actor.shape == correction.shape == (1, 1, 1)
    assert actor.item() == pytest.approx(4 * math.log(0.4))
    assert correction.item() == pytest.approx(0.8 * math.log(0.4))


def test_policy_gradient_is_by_the_log_probability_only():
    pi = one([0.6, 0.4]).double().requires_grad_()
    q = one([2.0, 5.0]).double().requires_grad_()
    rest = one([3.0]).double(), one([1.0]).double()
    ratio = one([0.5, 4.0]).double()
    actor, correction = acer_policy_error(q, *rest, pi, one(1), ratio, 2.0)
    (actor + correction).backward()
    assert pi.grad.flatten().tolist() == pytest.approx([0.0, 4 / 0.4 + 0.8 / 0.4])
    assert q.grad is None


def test_value_by_hand_and_gradient():
    q = torch.tensor([[[2.0, 5.0]]], dtype=torch.float64, requires_grad=True)
    retrace, action = one([3.0]).double(), one(1)
    assert acer_value_error(q, retrace, action).tolist() == [[[2.0]]]
    assert torch.autograd.gradcheck(lambda q: acer_value_error(q, retrace, action), q)


def test_trust_region():
    average = torch.tensor([[[0.25, 0.75]]])
    small, large = torch.tensor([[[0.1, 0.1]]]), torch.tensor([[[4.0, 4.0]]])
    found = acer_trust_region_update([small, large], average.log(), average.log(), 1.0)
    assert torch.equal(found[0], small)
    k, g = np.array([0.25, 0.75]), np.array([4.0, 4.0])
    expected = g - max(0, (k @ g - 1) / (k @ k)) * k
    assert found[1].flatten().tolist() == pytest.approx(expected.tolist())
    # what is left drives the policies apart by no more than allowed
    assert (found[1] * average).sum().item() == pytest.approx(1.0)
