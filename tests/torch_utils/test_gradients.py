import pytest
import torch
from torch import nn

from ding.torch_utils import (
    calculate_grad_norm,
    grad_ignore_norm,
    grad_ignore_value,
    is_differentiable,
)
from ding.torch_utils.gradients import GradientHistory, GradientLimit
from ding.utils.errors import ConfigError


def limited(history, *values):
    grads = [torch.tensor(value) for value in values]
    history.apply_(grads)
    return [grad.tolist() for grad in grads]


def history_of(kind, *shapes, **options):
    return GradientHistory(GradientLimit(kind, **options), [torch.zeros(s) for s in shapes])


def test_clipping_by_value_and_norm():
    assert limited(history_of("clip_value", 2, value=2.0), [3.0, -5.0]) == [[2.0, -2.0]]
    clipped = limited(history_of("clip_norm", 1, 1, value=1.0), [3.0], [4.0])
    assert clipped == [[pytest.approx(0.6)], [pytest.approx(0.8)]]
    largest = history_of("clip_norm", 2, value=1.0, norm_type=float("inf"))
    assert limited(largest, [2.0, 1.0]) == [[pytest.approx(1.0), pytest.approx(0.5)]]


def test_ignoring_by_value_and_norm():
    by_value = history_of("ignore_value", 1, 1, value=2.0)
    assert limited(by_value, [1.0], [3.0]) == [[0.0], [0.0]]
    assert limited(by_value, [1.0], [-2.0]) == [[1.0], [-2.0]]
    by_norm = history_of("ignore_norm", 2, value=4.9)
    assert limited(by_norm, [3.0, 4.0]) == [[0.0, 0.0]]
    assert limited(by_norm, [float("nan"), 0.0]) == [[0.0, 0.0]]


@pytest.mark.parametrize("kind", ["clip_momentum", "clip_momentum_norm"])
def test_momentum_clips_what_is_far_above_the_past(kind):
    history = history_of(kind, 2, coef=2.0, timestep=10)
    for _ in range(10):
        assert limited(history, [1.0, 1.0]) == [[1.0, 1.0]]
    assert limited(history, [1.0, 1.0]) == [[1.0, 1.0]]
    ((small, large),) = limited(history, [1.0, -1000.0])
    assert -10.0 < large < -1.0 and small <= 1.0
    assert limited(history, [float("inf"), 1.0])[0][1] <= 1.0
    assert all(x == x for x in limited(history, [1.0, 1.0])[0])


@pytest.mark.parametrize("kind", ["ignore_momentum", "ignore_momentum_norm"])
def test_momentum_ignores_what_is_far_above_the_past(kind):
    history = history_of(kind, 2, coef=2.0, timestep=10)
    for _ in range(11):
        assert limited(history, [1.0, 1.0]) == [[1.0, 1.0]]
    assert limited(history, [1.0, 1000.0]) == [[0.0, 0.0]]
    assert limited(history, [1.0, 1.0]) == [[1.0, 1.0]]


def test_history_is_state():
    first, second = (history_of("clip_momentum", 1, timestep=0) for _ in range(2))
    for _ in range(5):
        limited(first, [1.0])
    second.load_state_dict(first.state_dict())
    assert limited(first, [50.0]) == limited(second, [50.0])
    assert history_of("clip_norm", 1, value=1.0).state_dict() == {}


def test_bad_limits():
    with pytest.raises(ConfigError, match="did you mean 'clip_norm'"):
        GradientLimit("clip_nrm", 1.0)
    with pytest.raises(ConfigError, match="clip_norm needs a value"):
        GradientLimit("clip_norm")
    with pytest.raises(ConfigError, match="no effect with clip_momentum"):
        GradientLimit("clip_momentum", 1.0)


def model_with_gradient():
    model = nn.Linear(2, 1)
    model.weight.grad, model.bias.grad = torch.tensor([[3.0, 0.0]]), torch.tensor([4.0])
    return model


def test_functions_on_models():
    model = model_with_gradient()
    assert calculate_grad_norm(model) == 5.0
    assert calculate_grad_norm(model, "inf") == 4.0
    grad_ignore_norm(model.parameters(), 6.0)
    assert calculate_grad_norm(model) == 5.0
    grad_ignore_norm(model.parameters(), 4.0)
    assert calculate_grad_norm(model) == 0.0
    model = model_with_gradient()
    grad_ignore_value(model.parameters(), 3.5)
    assert calculate_grad_norm(model) == 0.0


def test_is_differentiable():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with pytest.raises(AssertionError, match=r"no gradient reaches \['1.weight', '1.bias'\]"):
        is_differentiable(model[0](torch.ones(1, 2)).sum(), model)
    with pytest.raises(AssertionError, match="already"):
        is_differentiable(model(torch.ones(1, 2)).sum(), model)
    model.zero_grad()
    is_differentiable(model(torch.ones(1, 2)).sum(), [model])
