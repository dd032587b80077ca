import torch
from torch.distributions import (
    Categorical,
    Independent,
    Normal,
    TanhTransform,
    TransformedDistribution,
)

from ding.torch_utils.distribution import (
    CategoricalPd,
    categorical_entropy,
    categorical_kl,
    categorical_log_prob,
    categorical_log_prob_entropy,
    categorical_sample,
    gaussian_entropy,
    gaussian_kl,
    gaussian_log_prob,
    tanh_gaussian_log_prob,
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


def test_categorical_entropy_kl_and_draws():
    logit, other = torch.randn(4, 3), torch.randn(4, 3)
    p, q = Categorical(logits=logit), Categorical(logits=other)
    assert torch.allclose(categorical_entropy(logit), p.entropy(), atol=1e-6)
    kl = torch.distributions.kl_divergence(p, q)
    assert torch.allclose(categorical_kl(logit, other), kl, atol=1e-6)
    drawn = categorical_sample(torch.tensor([0.2, 0.8]).log().expand(4000, 2))
    assert abs(drawn.float().mean().item() - 0.8) < 0.05


def test_gaussian_kl():
    mu, other_mu, (sigma, other_sigma) = (
        torch.randn(4, 3),
        torch.randn(4, 3),
        torch.rand(2, 4, 3) + 0.1,
    )
    p, q = Normal(mu, sigma), Normal(other_mu, other_sigma)
    expected = torch.distributions.kl_divergence(p, q).sum(-1)
    assert torch.allclose(gaussian_kl(mu, sigma, other_mu, other_sigma), expected, atol=1e-4)


def test_tanh_gaussian_log_prob_is_that_of_the_draw():
    mu, sigma, noise = torch.randn(50, 2), torch.rand(50, 2) + 0.5, torch.randn(50, 2)
    action, log_prob = tanh_gaussian_sample(mu, sigma, noise)
    again = tanh_gaussian_log_prob(mu, sigma, action)
    inside = action.abs().amax(-1) < 0.999
    assert inside.sum() > 20 and torch.allclose(again[inside], log_prob[inside], atol=1e-2)
    assert tanh_gaussian_log_prob(mu, sigma, torch.ones(50, 2)).isfinite().all()


def test_categorical_pd():
    pd = CategoricalPd(torch.tensor([[0.0, 5.0], [5.0, 0.0]]))
    assert pd.mode().tolist() == [1, 0] and pd.noise_mode(0.0).tolist() == [1, 0]
    expected = torch.nn.functional.softplus(torch.tensor(-5.0))
    assert torch.allclose(pd.neglogp(torch.tensor([1, 0])), expected)
    assert pd.neglogp(torch.tensor([1, 0]), reduction="none").shape == (2,)
    assert pd.entropy().shape == (2,) and pd.entropy("mean").shape == ()
    pd.update_logits(torch.zeros(1000, 2))
    assert 300 < pd.sample().sum() < 700


def test_agents_draw_from_the_last_axis_each():
    logit = torch.randn(3, 2, 4)
    pd, action = CategoricalPd(logit), torch.randint(4, (3, 2))
    assert categorical_sample(logit).shape == pd.sample().shape == pd.noise_mode().shape == (3, 2)
    drawn = torch.stack([categorical_sample(logit) for _ in range(4000)])
    share = torch.nn.functional.one_hot(drawn, 4).float().mean(dim=0)
    torch.testing.assert_close(share, logit.softmax(dim=-1), atol=0.04, rtol=0)
    wanted = -categorical_log_prob(logit, action)
    torch.testing.assert_close(pd.neglogp(action, reduction="none"), wanted)
    torch.testing.assert_close(pd.neglogp(action), wanted.mean())
