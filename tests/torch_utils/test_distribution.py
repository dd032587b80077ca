import torch
from torch.distributions import (
    Categorical,
    Independent,
    Normal,
    TanhTransform,
    TransformedDistribution,
)

from ding.torch_utils.distribution import (
    categorical_log_prob,
    categorical_log_prob_entropy,
    gaussian_entropy,
    gaussian_log_prob,
    tanh_gaussian_sample,
)


def test_categorical_agrees_with_torch():
    logit, action = torch.randn(6, 4), torch.randint(4, (6,))
    expected = Categorical(logits=logit)
    log_prob, entropy = categorical_log_prob_entropy(logit, action)
    torch.testing.assert_close(log_prob, expected.log_prob(action))
    torch.testing.assert_close(categorical_log_prob(logit, action), expected.log_prob(action))
    torch.testing.assert_close(entropy, expected.entropy())


def test_gaussian_agrees_with_torch():
    mu, sigma, action = torch.randn(6, 3), torch.rand(6, 3) + 0.1, torch.randn(6, 3)
    expected = Independent(Normal(mu, sigma), 1)
    torch.testing.assert_close(gaussian_log_prob(mu, sigma, action), expected.log_prob(action))
    torch.testing.assert_close(gaussian_entropy(sigma), expected.entropy())


def test_tanh_gaussian_agrees_with_torch_and_lets_gradients_through():
    mu = torch.randn(6, 3, requires_grad=True)
    sigma = (torch.rand(6, 3) + 0.1).requires_grad_()
    action, log_prob = tanh_gaussian_sample(mu, sigma, torch.randn_like(mu))
    base = Independent(Normal(mu.double(), sigma.double()), 1)
    expected = TransformedDistribution(base, [TanhTransform()]).log_prob(action.double())
    torch.testing.assert_close(log_prob.double(), expected, atol=1e-3, rtol=1e-3)
    (action.sum() + log_prob.sum()).backward()
    assert mu.grad.abs().sum() > 0 and sigma.grad.abs().sum() > 0


def test_tanh_gaussian_stays_finite_when_saturated():
    action, log_prob = tanh_gaussian_sample(
        torch.full((1, 2), 50.0), torch.ones(1, 2), torch.zeros(1, 2)
    )
    assert action.abs().max() <= 1 and log_prob.isfinite().all()
