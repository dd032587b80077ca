from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ding.torch_utils import Adam, GradientStep
from torch_utils.regression import batch, loss_of, net


def train(model: nn.Module, n: int, **options: Any) -> list[float]:
    compiled = options.pop("compiled", False)
    optimizer = Adam(model.parameters(), lr=0.05, **options)
    step = GradientStep(model, optimizer, loss_of(model), compiled=compiled)
    return [float(step(batch())[0]) for _ in range(n)]


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("clip", [None, "clip_norm", "clip_value"])
def test_flat_adam_is_torchs(clip: str | None, decay: float) -> None:
    options: dict[str, Any] = dict(grad_clip_type=clip, clip_value=0.3) if clip else {}
    mine = train(net(), 20, weight_decay=decay, **options)
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=decay)
    reference = []
    for _ in range(20):
        loss, _ = loss_of(model)(batch())
        optimizer.zero_grad()
        loss.backward()
        if clip == "clip_norm":
            nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        elif clip == "clip_value":
            nn.utils.clip_grad_value_(model.parameters(), 0.3)
        optimizer.step()
        reference.append(float(loss.detach()))
    assert mine == pytest.approx(reference, rel=1e-4)
    assert reference[-1] < reference[0]


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_step_is_the_eager_one() -> None:
    options: dict[str, Any] = dict(grad_clip_type="clip_norm", clip_value=0.5, weight_decay=0.01)
    eager = train(net(), 8, **options)
    compiled = train(net(), 8, compiled=True, **options)
    assert compiled == pytest.approx(eager, abs=1e-4)


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_compiled_step_sees_what_changes_around_it() -> None:
    """Another network's weights, its new home in memory, the learning rate, the batch's shape."""
    assert _changing(compiled=True) == pytest.approx(_changing(compiled=False), abs=1e-4)


def _changing(compiled: bool) -> list[float]:
    torch.manual_seed(0)
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer = Adam(model.parameters(), lr=0.1)

    def loss(batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            target = other(batch["x"])
        return (model(batch["x"]) - target).square().mean(), {"target": target.mean()}

    step = GradientStep(model, optimizer, loss, compiled=compiled)

    def losses(n: int) -> list[float]:
        x = torch.randn(n, 3, generator=torch.Generator().manual_seed(n))
        value, metrics = step({"x": x})
        return [float(value), float(metrics["target"])]

    seen = losses(4)
    with torch.no_grad():
        other.weight.mul_(2)
        other.bias.add_(3)
    seen += losses(4)
    moved = Adam(other.parameters())
    with torch.no_grad():
        moved.flat.add_(1)
    seen += losses(4)
    optimizer.param_groups[0]["lr"] = 0.5
    return seen + losses(4) + losses(4) + losses(5)


def test_state_of_adam_continues_exactly() -> None:
    model = net()
    optimizer = Adam(model.parameters(), lr=0.05)
    step = GradientStep(model, optimizer, loss_of(model))
    for _ in range(4):
        step(batch())
    other = net(seed=7)
    optimizer_2 = Adam(other.parameters(), lr=0.05)
    other.load_state_dict(model.state_dict())
    optimizer_2.load_state_dict(optimizer.state_dict())
    step_2 = GradientStep(other, optimizer_2, loss_of(other))
    for _ in range(4):
        assert float(step(batch())[0]) == float(step_2(batch())[0])


def test_works_in_a_gradient_step():
    model = nn.Linear(3, 1)
    optimizer = Adam(model.parameters(), lr=0.1, grad_clip_type="clip_momentum_norm")
    step = GradientStep(model, optimizer, lambda x: ((model(x) - 1.0).square().mean(), {}))
    losses = [step(torch.ones(2, 3))[0].item() for _ in range(50)]
    assert losses[-1] < 1e-2 < losses[0]


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")
def test_history_moves_on_in_a_compiled_step():
    options = dict(grad_clip_type="clip_momentum", clip_momentum_timestep=2)
    steps, optimizers = [], []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizers.append(Adam(model.parameters(), lr=0.1, **options))
        loss = partial(squared_error, model)
        steps.append(GradientStep(model, optimizers[-1], loss, compiled=compiled))
    for scale in (1.0, 1.1, 1.0, 100.0, 1.0):
        batch = {"x": torch.linspace(-1, 1, 12).reshape(4, 3), "y": torch.full((4, 1), scale)}
        for step in steps:
            step(batch)
        assert torch.allclose(optimizers[0].flat, optimizers[1].flat, atol=1e-5)


def squared_error(model, batch):
    return (model(batch["x"]) - batch["y"]).square().mean(), {}
