import math

import pytest
import torch

from ding.rl_utils import (
    clipped_surrogate,
    ppo_data,
    ppo_data_continuous,
    ppo_error,
    ppo_error_continuous,
    ppo_policy_data,
    ppo_policy_error,
    ppo_value_data,
    ppo_value_error,
)


def logits(*probs):
    return torch.tensor([[p, 1 - p] for p in probs]).log()


ACTION = torch.tensor([0, 0])
VALUES = {"value_new": torch.zeros(2), "value_old": torch.zeros(2), "return_": torch.zeros(2)}


def policy_data(new, old, adv, weight=None):
    return ppo_policy_data(logits(*new), logits(*old), ACTION, torch.tensor(adv), weight)


def test_surrogate_by_hand():
    ratio = torch.tensor([2.0, 2.0, 0.5, 0.5, 1.0])
    adv = torch.tensor([1.0, -1.0, 1.0, -1.0, 3.0])
    expected = torch.tensor([1.2, -2.0, 0.5, -0.8, 3.0])
    torch.testing.assert_close(clipped_surrogate(ratio, adv, 0.2), expected)


def test_dual_clip_bounds_negative_advantages():
    ratio, adv = torch.tensor([10.0, 10.0, 2.0]), torch.tensor([-1.0, 1.0, -1.0])
    dual = clipped_surrogate(ratio, adv, 0.2, dual_clip=3.0)
    torch.testing.assert_close(dual, torch.tensor([-3.0, 1.2, -2.0]))
    with pytest.raises(ValueError, match="dual_clip must be greater than 1"):
        ppo_policy_error(policy_data([0.5, 0.5], [0.5, 0.5], [1.0, 1.0]), dual_clip=1.0)


def test_policy_error_by_hand():
    # ratios 0.8 / 0.4 = 2 (clipped to 1.2) and 0.5 / 0.5 = 1
    data = policy_data([0.8, 0.5], [0.4, 0.5], [1.0, -3.0])
    loss, info = ppo_policy_error(data)
    assert loss.policy_loss.item() == pytest.approx(-(1.2 - 3.0) / 2)
    entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    assert loss.entropy_loss.item() == pytest.approx((entropy + math.log(2)) / 2)
    assert info.approx_kl.item() == pytest.approx(-math.log(2) / 2)
    assert info.clipfrac.item() == 0.5
    weighted, _ = ppo_policy_error(data._replace(weight=torch.tensor([1.0, 0.0])))
    assert weighted.policy_loss.item() == pytest.approx(-0.6)


def test_clipped_samples_give_no_gradient():
    new = logits(0.8, 0.5).requires_grad_()
    old = logits(0.4, 0.5).requires_grad_()
    data = ppo_policy_data(new, old, ACTION, torch.tensor([1.0, 1.0]), None)
    ppo_policy_error(data)[0].policy_loss.backward()
    assert new.grad[0].tolist() == [0.0, 0.0]
    # d ratio / d logit = prob (1 - prob) / old prob, halved by the mean
    assert new.grad[1].tolist() == pytest.approx([-0.25, 0.25])
    assert old.grad is None


def test_value_error_by_hand():
    new, old, return_ = torch.tensor([1.0, 0.1]), torch.zeros(2), torch.tensor([1.0, 1.0])
    data = ppo_value_data(new, old, return_, None)
    free = ppo_value_error(data, use_value_clip=False)
    assert free.item() == pytest.approx(0.5 * (0.0 + 0.81) / 2)
    assert ppo_value_error(data, 0.2).item() == pytest.approx(0.5 * (0.64 + 0.81) / 2)
    weighted = ppo_value_error(data._replace(weight=torch.tensor([2.0, 0.0])), 0.2)
    assert weighted.item() == pytest.approx(0.5 * 0.64)


def test_ppo_error_joins_policy_and_value():
    policy = policy_data([0.8, 0.5], [0.4, 0.5], [1.0, -3.0])
    data = ppo_data(
        policy.logit_new,
        policy.logit_old,
        ACTION,
        torch.ones(2),
        torch.zeros(2),
        policy.adv,
        torch.ones(2),
        None,
    )
    loss, info = ppo_error(data, use_value_clip=False)
    assert loss.policy_loss.item() == pytest.approx(0.9) and loss.value_loss.item() == 0
    assert ppo_error(data)[0].value_loss.item() == pytest.approx(0.32)
    assert not info.approx_kl.requires_grad


def test_several_discrete_actions_multiply_their_ratios():
    new, old = [logits(0.8), logits(0.6)], [logits(0.4), logits(0.5)]
    action = torch.tensor([[0, 1]])
    data = ppo_policy_data(new, old, action, torch.tensor([1.0]), None)
    loss, info = ppo_policy_error(data, clip_ratio=10.0)
    assert loss.policy_loss.item() == pytest.approx(-2.0 * 0.8)
    assert info.approx_kl.item() == pytest.approx(-math.log(1.6))


def test_continuous_by_hand():
    def gauss(mu, sigma):
        return {"mu": torch.tensor([[mu]]), "sigma": torch.tensor([[sigma]])}

    # action 1: new log-prob 0 and old log-prob -0.5 (same sigma), ratio e^0.5
    data = ppo_data_continuous(
        gauss(1.0, 1.0),
        gauss(0.0, 1.0),
        torch.tensor([1.0]),
        torch.tensor([3.0]),
        torch.tensor([3.0]),
        torch.tensor([-1.0]),
        torch.tensor([1.0]),
        None,
    )
    loss, info = ppo_error_continuous(data)
    assert loss.policy_loss.item() == pytest.approx(math.exp(0.5))
    assert loss.value_loss.item() == pytest.approx(2.0)
    assert loss.entropy_loss.item() == pytest.approx(0.5 * math.log(2 * math.pi * math.e))
    assert info.approx_kl.item() == pytest.approx(-0.5) and info.clipfrac.item() == 1.0
    pair = data._replace(mu_sigma_new=(torch.tensor([[1.0]]), torch.tensor([[1.0]])))
    assert ppo_error_continuous(pair)[0] == loss


def test_agents_with_one_advantage_share_their_mean_ratio():
    # ratios 2 and 0.5 of the two agents: mean 1.25, clipped to 1.2
    new, old = (
        torch.stack([logits(0.8), logits(0.2)], 1),
        torch.stack([logits(0.4), logits(0.4)], 1),
    )
    data = ppo_policy_data(new, old, torch.tensor([[0, 0]]), torch.tensor([1.0]), None)
    loss, _ = ppo_policy_error(data)
    assert loss.policy_loss.item() == pytest.approx(-1.2)
    entropy = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    assert loss.entropy_loss.item() == pytest.approx(entropy)


def test_gradients():
    torch.manual_seed(0)
    old, adv, return_ = torch.randn(3, 2).double(), torch.randn(3).double(), torch.randn(3).double()

    def discrete(logit, value):
        action = torch.tensor([0, 1, 1])
        data = ppo_data(logit, old, action, value, torch.zeros(3).double(), adv, return_, None)
        return tuple(ppo_error(data, clip_ratio=10.0)[0])

    def continuous(mu, value):
        new, before = {"mu": mu, "sigma": mu.exp()}, {"mu": old, "sigma": old.exp()}
        zero = torch.zeros(3).double()
        data = ppo_data_continuous(new, before, old + 1, value, zero, adv, return_, None)
        return tuple(ppo_error_continuous(data, clip_ratio=10.0)[0])

    inputs = [torch.randn(*shape).double().requires_grad_() for shape in ((3, 2), (3,))]
    assert torch.autograd.gradcheck(discrete, inputs)
    assert torch.autograd.gradcheck(continuous, inputs)
