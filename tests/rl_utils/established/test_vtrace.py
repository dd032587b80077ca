import numpy as np
import pytest
import torch

from ding.rl_utils import (
    compute_importance_weights,
    vtrace_advantage,
    vtrace_data,
    vtrace_error_continuous_action,
    vtrace_error_discrete_action,
    vtrace_nstep_return,
)


def returns_reference(rho, c, reward, value, gamma, lambda_):
    """The sum of the paper, written out."""
    steps = len(reward)
    out = np.array(value[:steps], dtype=np.float64)
    for s in range(steps):
        for t in range(s, steps):
            trace = np.prod(lambda_ * c[s:t], axis=0)
            delta = rho[t] * (reward[t] + gamma * value[t + 1] - value[t])
            out[s] += gamma ** (t - s) * trace * delta
    return out


@pytest.mark.parametrize("lambda_", [1.0, 0.9])
def test_returns_against_the_sum(lambda_):
    rng = np.random.default_rng(0)
    rho, c, reward = rng.random((3, 6, 2))
    value = rng.standard_normal((7, 2))
    found = vtrace_nstep_return(
        *(torch.tensor(x) for x in (rho, c, reward, value)), gamma=0.9, lambda_=lambda_
    )
    np.testing.assert_allclose(found, returns_reference(rho, c, reward, value, 0.9, lambda_))


def test_on_policy_returns_are_lambda_returns_of_one():
    value, reward, one = torch.zeros(4, 1), torch.ones(3, 1), torch.ones(3, 1)
    returns = vtrace_nstep_return(one, one, reward, value, gamma=0.5, lambda_=1.0)
    assert returns.flatten().tolist() == [1.75, 1.5, 1.0]


def test_advantage_by_hand():
    numbers = (torch.tensor([[x]]) for x in (0.5, 1.0, 4.0, 2.0))
    assert vtrace_advantage(*numbers, gamma=0.5).item() == 0.5 * (1 + 2 - 2)


def trajectory(continuous=False, weight=None):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def gauss():
        return {"mu": normal(4, 3, 2), "sigma": normal(4, 3, 2).exp()}

    outputs = [gauss(), gauss()] if continuous else [normal(4, 3, 5), normal(4, 3, 5)]
    action = torch.randint(5, (4, 3), generator=generator)
    action = normal(4, 3, 2) if continuous else action
    return vtrace_data(*outputs, action, normal(5, 3), normal(4, 3), weight)


@pytest.mark.parametrize("continuous", [False, True])
def test_losses_against_a_reference(continuous):
    weight = torch.rand(4, 3).double()
    data = trajectory(continuous, weight)
    error = vtrace_error_continuous_action if continuous else vtrace_error_discrete_action
    loss = error(data, 0.9, 0.8, rho_clip_ratio=1.1, c_clip_ratio=0.9, rho_pg_clip_ratio=1.3)
    if continuous:
        normal = torch.distributions.Normal(data.target_output["mu"], data.target_output["sigma"])
        policy = torch.distributions.Independent(normal, 1)
    else:
        policy = torch.distributions.Categorical(logits=data.target_output)
    kind = "continuous" if continuous else "discrete"
    ratio = compute_importance_weights(*data[:3], kind).numpy()
    value, reward = data.value.numpy(), data.reward.numpy()
    returns = returns_reference(ratio.clip(max=1.1), ratio.clip(max=0.9), reward, value, 0.9, 0.8)
    following = np.concatenate([returns[1:], value[-1:]])
    advantage = ratio.clip(max=1.3) * (reward + 0.9 * following - value[:-1])
    log_prob, w = policy.log_prob(data.action).numpy(), weight.numpy()
    assert loss.policy_loss.item() == pytest.approx(-(log_prob * advantage * w).mean())
    assert loss.value_loss.item() == pytest.approx(((value[:-1] - returns) ** 2 * w).mean())
    assert loss.entropy_loss.item() == pytest.approx((policy.entropy() * weight).mean().item())


def test_gradients():
    data = trajectory()
    logit, value = data.target_output.requires_grad_(), data.value.requires_grad_()
    vtrace_error_discrete_action(data).policy_loss.backward()
    assert value.grad is None and logit.grad.abs().sum() > 0
    inputs = [torch.rand(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    assert torch.autograd.gradcheck(vtrace_nstep_return, (*inputs, value))
