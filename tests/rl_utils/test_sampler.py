from types import SimpleNamespace

import pytest
import torch

from ding.rl_utils import (
    ArgmaxSampler,
    HybridDeterminsticSampler,
    HybridStochasticSampler,
    MultinomialSampler,
    MuSampler,
    ReparameterizationSampler,
)

LOGIT = torch.tensor([[0.1, 0.6, 0.3]]).log()


def test_argmax_and_mu():
    assert ArgmaxSampler()(LOGIT).tolist() == [1]
    mu = torch.tensor([[1.0, 2.0]])
    assert MuSampler()({"mu": mu}) is mu and MuSampler()(SimpleNamespace(mu=mu)) is mu


def test_multinomial_draws_by_probability():
    torch.manual_seed(0)
    drawn = MultinomialSampler()(LOGIT.expand(20000, 3))
    share = torch.bincount(drawn, minlength=3) / 20000
    assert share.tolist() == pytest.approx([0.1, 0.6, 0.3], abs=0.02)


def test_reparameterised_draws():
    torch.manual_seed(0)
    mu = torch.tensor([1.0, -2.0], requires_grad=True)
    sigma = torch.tensor([0.5, 2.0], requires_grad=True)
    drawn = ReparameterizationSampler()(
        {"mu": mu.expand(20000, 2), "sigma": sigma.expand(20000, 2)}
    )
    assert drawn.mean(0).tolist() == pytest.approx([1.0, -2.0], abs=0.05)
    assert drawn.std(0).tolist() == pytest.approx([0.5, 2.0], abs=0.05)
    drawn.sum().backward()
    assert mu.grad.tolist() == [20000.0, 20000.0] and (sigma.grad != 0).all()


def test_hybrid():
    arguments = {"mu": torch.ones(1, 2), "sigma": torch.zeros(1, 2)}
    output = {"action_type": torch.tensor([[-1e9, 0.0]]), "action_args": arguments}
    for sampler in (HybridStochasticSampler(), HybridDeterminsticSampler()):
        action = sampler(output)
        assert action["action_type"].tolist() == [1]
        assert action["action_args"].tolist() == [[1.0, 1.0]]
