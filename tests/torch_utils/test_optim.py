from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ding.torch_utils import (
    Adam,
    GradientStep,
    TargetNetwork,
    to_device,
    to_dtype,
    to_list,
    to_ndarray,
    to_tensor,
)
from ding.torch_utils.running_statistics import RunningScale
from ding.utils.errors import ConfigError


def net(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))


def loss_of(model: nn.Module) -> Any:
    def loss(batch: Any) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        error = (model(batch["x"]).squeeze(1) - batch["y"]).square()
        return error.mean(), {"largest": error.detach().max()}

    return loss


def batch() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8, 3, generator=generator)
    return {"x": x, "y": 3 * x.sum(dim=1)}


def test_a_known_gradient_is_as_good_as_a_loss() -> None:
    with_loss, with_gradient = (nn.Parameter(torch.tensor(0.5)) for _ in range(2))
    by_loss, by_gradient = Adam([with_loss], lr=0.1), Adam([with_gradient], lr=0.1)
    for slope in (2.0, -1.0, 3.0):
        by_loss.step_on(with_loss * slope)
        by_gradient.step_with(torch.tensor(slope))
    assert with_gradient.item() == with_loss.item() != 0.5


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


def test_bad_options_of_adam() -> None:
    with pytest.raises(ConfigError, match="'clip_norm'"):
        Adam(net().parameters(), grad_clip_type="clip_nrm", clip_value=1.0)
    with pytest.raises(ConfigError, match="both or none"):
        Adam(net().parameters(), clip_value=1.0)
    with pytest.raises(ValueError, match="at least one parameter"):
        Adam([])


def test_target_network() -> None:
    source = net()
    target = TargetNetwork(source, theta=0.5)
    before = target.module[0].weight.clone()
    with torch.no_grad():
        source[0].weight.add_(1.0)
    target.update()
    assert torch.allclose(target.module[0].weight, before + 0.5)
    assert not any(p.requires_grad for p in target.module.parameters())
    assign = TargetNetwork(source, freq=2)
    with torch.no_grad():
        source[0].weight.add_(1.0)
    assign.update()
    assert not torch.equal(assign.module[0].weight, source[0].weight)
    state = assign.state_dict()
    assign.update()
    assert torch.equal(assign.module[0].weight, source[0].weight)
    other = TargetNetwork(source, freq=2)
    other.load_state_dict(state)
    other.update()  # its second, as the state says
    assert torch.equal(other.module[0].weight, source[0].weight)
    for wrong in ({}, {"freq": 1, "theta": 0.1}):
        with pytest.raises(ConfigError, match="exactly one"):
            TargetNetwork(source, **wrong)  # type: ignore[arg-type]


def test_target_copies_buffers() -> None:
    source = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    target = TargetNetwork(source, theta=0.1)
    source(torch.randn(8, 2))
    target.update()
    assert torch.equal(target.module[1].running_mean, source[1].running_mean)


def test_running_scale_is_the_std_of_all() -> None:
    rng = np.random.default_rng(0)
    scale, seen = RunningScale(), []
    assert scale.std == 1.0
    for n in (5, 1, 40):
        values = rng.normal(3, 7, n)
        scale.update(values)
        seen.append(values)
    assert scale.std == pytest.approx(np.concatenate(seen).std(), rel=1e-6)
    other = RunningScale()
    other.load_state_dict(scale.state_dict())
    assert other.std == scale.std


def test_moving_data() -> None:
    tree = {"a": [np.zeros(2), 1.5], "b": (np.float64(2), None, "text"), "n": 3}
    tensors = to_tensor(tree)
    assert tensors["a"][0].dtype == torch.float32
    assert tensors["b"][1:] == (None, "text")
    assert tensors["n"].dtype == torch.int64
    assert to_tensor({"a": 1, "b": 2}, ignore_keys=("b",))["b"] == 2
    assert to_tensor([1, 2], dtype=torch.float32)[0].dtype == torch.float32
    back = to_ndarray(tensors)
    assert back["a"][0].tolist() == [0, 0]
    assert to_ndarray(tensors["n"], dtype=np.int8).dtype == np.int8
    assert to_list({"x": torch.arange(2), "s": "a"}) == {"x": [0, 1], "s": "a"}
    assert to_dtype([torch.zeros(1), "a"], torch.float64)[0].dtype == torch.float64
    moved = to_device(
        {"x": torch.zeros(1), "skip": "y", "net": net()}, "cpu", ignore_keys=("skip",)
    )
    assert moved["skip"] == "y"
    assert to_device([torch.zeros(1)], "cpu")[0].device.type == "cpu"


def test_a_step_takes_the_gradients_of_autograd_and_of_nothing_else() -> None:
    model, unused, other = net(), nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(()))
    optimizer = Adam([*model.parameters(), unused])
    loss = loss_of(model)(batch())[0] * other
    wanted = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    model.zero_grad()  # as if somebody else had taken the gradients away
    optimizer.step_on(loss)
    found = [parameter.grad for parameter in (*model.parameters(), unused)]
    assert all(torch.equal(a, b) for a, b in zip(found, (*wanted, torch.zeros(2)), strict=True))
    assert torch.equal(unused, torch.ones(2)) and other.grad is None
    with pytest.raises(RuntimeError, match="scalar"):
        optimizer.step_on(model(batch()["x"]))
