from copy import deepcopy

import pytest
import torch
from torch import nn

from ding.torch_utils import Adam, AdamW, RMSprop
from ding.utils.errors import ConfigError
from torch_utils import regression


def net():
    torch.manual_seed(0)
    return nn.Linear(3, 1)


def train(model, optimizer, n=20, scale=1.0):
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    for _ in range(n):
        optimizer.zero_grad()
        (scale * (model(x) - 1.0).square().mean()).backward()
        optimizer.step()
    return model.weight.detach().clone()


@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        (Adam, torch.optim.Adam, {"weight_decay": 0.1}),
        (AdamW, torch.optim.AdamW, {"weight_decay": 0.1}),
        (RMSprop, torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
    ],
)
def test_without_limits_as_in_torch(ours, theirs, options):
    one, other = net(), net()
    first = train(one, ours(one.parameters(), lr=0.01, **options))
    second = train(other, theirs(other.parameters(), lr=0.01, **options))
    assert torch.allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("optimizer_cls", [Adam, AdamW, RMSprop])
def test_limits_apply_to_every_optimizer(optimizer_cls):
    free, ignoring, clipping = net(), net(), net()
    before = free.weight.detach().clone()
    assert not torch.equal(train(free, optimizer_cls(free.parameters(), lr=0.1)), before)
    options = dict(grad_ignore_type="ignore_norm", ignore_value=1e-6, weight_decay=0.0)
    stopped = optimizer_cls(ignoring.parameters(), lr=0.1, **options)
    assert torch.equal(train(ignoring, stopped), before)
    options = dict(grad_clip_type="clip_norm", clip_value=1e-3, clip_norm_type=float("inf"))
    train(clipping, optimizer_cls(clipping.parameters(), lr=0.1, **options), n=1)
    assert max(p.grad.abs().max() for p in clipping.parameters()) <= 1e-3


def test_a_spike_does_not_reach_the_moments():
    def squared_after_a_spike(**options):
        model = net()
        optimizer = Adam(model.parameters(), lr=0.01, **options)
        train(model, optimizer, n=15)
        train(model, optimizer, n=1, scale=1e4)
        return optimizer.state[optimizer.flat]["exp_avg_sq"].max().item()

    options = dict(grad_clip_type="clip_momentum_norm", clip_momentum_timestep=5)
    assert squared_after_a_spike(**options) < 1e-4 * squared_after_a_spike()


@pytest.mark.parametrize("kind", ["clip_momentum", "clip_momentum_norm"])
@pytest.mark.parametrize("optimizer_cls", [Adam, AdamW, RMSprop])
def test_history_is_saved_with_the_optimizer(optimizer_cls, kind):
    options = dict(lr=0.01, grad_clip_type=kind, clip_momentum_timestep=5)
    one, other = net(), net()
    first, second = (optimizer_cls(model.parameters(), **options) for model in (one, other))
    train(one, first, n=8)
    other.load_state_dict(one.state_dict())
    second.load_state_dict(deepcopy(first.state_dict()))
    assert torch.equal(train(one, first, scale=100.0), train(other, second, scale=100.0))


def test_reads_the_state_of_an_optimizer_without_limits():
    one, other = net(), net()
    options = dict(grad_clip_type="clip_momentum", clip_momentum_timestep=10**6)
    first, second = Adam(one.parameters()), Adam(other.parameters(), **options)
    train(one, first)
    state = first.state_dict()
    del state["limits"]
    second.load_state_dict(state)
    other.load_state_dict(one.state_dict())
    assert torch.equal(train(one, first), train(other, second))


def test_bad_options():
    parameters = list(net().parameters())
    with pytest.raises(ConfigError, match="did you mean 'clip_momentum'"):
        Adam(parameters, grad_clip_type="clip_momentm")
    with pytest.raises(ConfigError, match="is a grad_clip_type"):
        RMSprop(parameters, grad_ignore_type="clip_norm", ignore_value=1.0)
    with pytest.raises(ConfigError, match="is a grad_ignore_type"):
        RMSprop(parameters, grad_clip_type="ignore_norm", clip_value=1.0)
    with pytest.raises(TypeError, match="AdamW has no option clip_valu"):
        AdamW(parameters, clip_valu=1.0)


def test_bad_options_of_adam() -> None:
    with pytest.raises(ConfigError, match="'clip_norm'"):
        Adam(net().parameters(), grad_clip_type="clip_nrm", clip_value=1.0)
    with pytest.raises(ConfigError, match="both or none"):
        Adam(net().parameters(), clip_value=1.0)
    with pytest.raises(ValueError, match="at least one parameter"):
        Adam([])


def test_a_known_gradient_is_as_good_as_a_loss() -> None:
    with_loss, with_gradient = (nn.Parameter(torch.tensor(0.5)) for _ in range(2))
    by_loss, by_gradient = Adam([with_loss], lr=0.1), Adam([with_gradient], lr=0.1)
    for slope in (2.0, -1.0, 3.0):
        by_loss.step_on(with_loss * slope)
        by_gradient.step_with(torch.tensor(slope))
    assert with_gradient.item() == with_loss.item() != 0.5


def test_a_step_takes_the_gradients_of_autograd_and_of_nothing_else() -> None:
    model, unused, other = (
        regression.net(),
        nn.Parameter(torch.ones(2)),
        nn.Parameter(torch.ones(())),
    )
    optimizer = Adam([*model.parameters(), unused])
    loss = regression.loss_of(model)(regression.batch())[0] * other
    wanted = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    model.zero_grad()  # as if somebody else had taken the gradients away
    optimizer.step_on(loss)
    found = [parameter.grad for parameter in (*model.parameters(), unused)]
    assert all(torch.equal(a, b) for a, b in zip(found, (*wanted, torch.zeros(2)), strict=True))
    assert torch.equal(unused, torch.ones(2)) and other.grad is None
    with pytest.raises(RuntimeError, match="scalar"):
        optimizer.step_on(model(regression.batch()["x"]))
