import math

import pytest
import torch
from torch import nn

from ding.model import (
    DiscreteHead,
    DuelingHead,
    MultiHead,
    RegressionHead,
    ReparameterizationHead,
)
from ding.utils.errors import ConfigError

X = torch.randn(5, 8)


def test_layer_num_counts_hidden_layers():
    assert [type(m) for m in DiscreteHead(8, 3, layer_num=0).main] == [nn.Linear]
    two = DiscreteHead(16, 3, layer_num=2, activation="tanh", in_size=8)
    shapes = [tuple(m.weight.shape) for m in two.main if isinstance(m, nn.Linear)]
    assert shapes == [(16, 8), (16, 16), (3, 16)]
    assert two(X)["logit"].shape == (5, 3)
    with pytest.raises(ConfigError, match="negative, got -1"):
        DiscreteHead(8, 3, layer_num=-1)


def test_dueling_head_centres_the_advantage():
    head = DuelingHead(8, 3)
    logit = head(X)["logit"]
    torch.testing.assert_close(logit.mean(dim=1, keepdim=True), head.value(X))
    difference = head.advantage(X)
    torch.testing.assert_close(logit[:, 0] - logit[:, 1], difference[:, 0] - difference[:, 1])


def test_regression_head_squeezes_one_output_and_bounds():
    assert RegressionHead(8, 1)(X)["pred"].shape == (5,)
    assert RegressionHead(8, 1, squeeze=False)(X)["pred"].shape == (5, 1)
    assert RegressionHead(8, 2, final_tanh=True)(100 * X)["pred"].abs().max() <= 1


def test_sigma_types():
    fixed = ReparameterizationHead(8, 2, sigma_type="fixed", fixed_sigma_value=0.3)(X)
    torch.testing.assert_close(fixed["sigma"], torch.full((5, 2), 0.3))
    independent = ReparameterizationHead(8, 2, sigma_type="independent")
    torch.testing.assert_close(independent(X)["sigma"], torch.ones(5, 2))
    independent(X)["sigma"].sum().backward()
    assert independent.log_sigma_param.grad.tolist() == [[5.0, 5.0]]
    conditioned = ReparameterizationHead(8, 2, sigma_type="conditioned")(X)["sigma"]
    assert conditioned.shape == (5, 2) and conditioned[0, 0] != conditioned[1, 0]


def test_sigma_is_clamped():
    head = ReparameterizationHead(8, 2)
    with torch.no_grad():
        head.log_sigma_param.copy_(torch.tensor([[-100.0, 100.0]]))
    sigma = head(X)["sigma"][0].tolist()
    assert sigma == pytest.approx([math.exp(-20), math.exp(2)])


def test_bound_type_and_unknown_types():
    assert ReparameterizationHead(8, 2, bound_type="tanh")(100 * X)["mu"].abs().max() <= 1
    with pytest.raises(ConfigError, match="did you mean 'conditioned'"):
        ReparameterizationHead(8, 2, sigma_type="condition")
    with pytest.raises(ConfigError, match="unknown bound_type 'clip'"):
        ReparameterizationHead(8, 2, bound_type="clip")


def test_multi_head_lists_logits():
    logits = MultiHead(DuelingHead, 8, [2, 3], layer_num=1)(X)["logit"]
    assert [logit.shape for logit in logits] == [(5, 2), (5, 3)]
