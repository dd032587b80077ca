"""Behaviour cloning: its losses by hand, its learning rates, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from ding.model import create_model
from ding.policy import create_policy
from ding.torch_utils.early_stop import EarlyStop
from ding.utils.batch import Rows
from ding.utils.errors import ConfigError


def policy(continuous: bool = False, **settings: Any) -> Any:
    model: dict[str, Any] = dict(obs_shape=3, action_shape=2)
    model |= settings.pop("model", {})
    own = dict(continuous=True, loss_type="mse_loss") if continuous else {}
    cfg = dict(type="bc", on_policy=False, model=model, **{**own, **settings})
    return create_policy(cfg)


def discrete_loss(logit: list[float], action: int, **learn: Any) -> tuple[float, dict[str, Any]]:
    made = policy(learn=learn)
    made._model.forward = lambda x: {"logit": torch.tensor([logit])}
    loss, metrics = made._loss({"obs": torch.zeros(1, 3), "action": torch.tensor([action])})
    return float(loss), metrics


def test_cross_entropy() -> None:
    # softmax([log 3, 0]) = [0.75, 0.25]
    loss, metrics = discrete_loss([math.log(3.0), 0.0], 0)
    assert loss == pytest.approx(-math.log(0.75))
    assert metrics == {}
    _, metrics = discrete_loss([math.log(3.0), 0.0], 0, show_accuracy=True)
    assert float(metrics["accuracy"]) == 1.0


def test_label_smoothing() -> None:
    # A tenth for both: 0.95 of the first label, 0.05 of the second.
    loss, _ = discrete_loss([math.log(3.0), 0.0], 0, ce_label_smooth=True)
    assert loss == pytest.approx(-0.95 * math.log(0.75) - 0.05 * math.log(0.25))


def test_label_smoothing_leaves_out_what_a_mask_forbids() -> None:
    made = policy(learn=dict(ce_label_smooth=True))
    logit = torch.tensor([[math.log(3.0), 0.0, 5.0]])
    mask = torch.tensor([[1, 1, 0]])
    made._model.forward = lambda x: {"logit": logit, "action_mask": mask}
    loss, _ = made._loss({"obs": torch.zeros(1, 3), "action": torch.tensor([0])})
    assert float(loss) == pytest.approx(-0.95 * math.log(0.75) - 0.05 * math.log(0.25))


@pytest.mark.parametrize(("kind", "expected"), [("mse_loss", 0.65), ("l1_loss", 0.7)])
def test_regression(kind: str, expected: float) -> None:
    made = policy(True, loss_type=kind)
    made._model.forward = lambda x: {"action": torch.tensor([[0.5, -0.5]])}
    # Errors 0.3 and 1.1.
    batch = {"obs": torch.zeros(1, 3), "action": torch.tensor([[0.8, 0.6]])}
    assert float(made._loss(batch)[0]) == pytest.approx(expected)


def test_tanh_mask() -> None:
    made = policy(True, learn=dict(tanh_mask=True))
    made._model.forward = lambda x: {"action": torch.tensor([[0.5, 0.9]])}
    batch = {"obs": torch.zeros(1, 3), "action": torch.tensor([[0.4, 0.0]])}
    assert float(made._loss(batch)[0]) == pytest.approx(0.01)  # the saturated one is left out
    made._model.forward = lambda x: {"action": torch.tensor([[-0.9, 0.9]])}
    assert float(made._loss(batch)[0]) == pytest.approx((1.69 + 0.81) / 2)  # nothing is left


def test_likelihood_of_a_gaussian() -> None:
    made = policy(True, model=dict(action_space="reparameterization"), loss_type=None)
    logit = {"mu": torch.tensor([[0.0, 1.0]]), "sigma": torch.tensor([[1.0, 0.5]])}
    made._model.forward = lambda x: {"logit": logit}
    loss, _ = made._loss({"obs": torch.zeros(1, 3), "action": torch.tensor([[1.0, 1.0]])})
    by_hand = 0.5 + math.log(1.0) + math.log(0.5) + 2 * 0.5 * math.log(2 * math.pi)
    assert float(loss) == pytest.approx(by_hand)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_overfits_a_batch(optimizer: str) -> None:
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((32, 3)).astype(np.float32)
    samples = Rows({"obs": obs, "action": (obs[:, 0] > 0).astype(np.int64)})
    made = policy(learn=dict(optimizer=optimizer, learning_rate=0.01))
    first = made.held_out(samples)
    for _ in range(100):
        made.learn_mode.forward(samples)
    last = made.held_out(samples)
    assert last["accuracy"] == 1.0
    assert last["loss"] < 0.2 * first["loss"]
    acted = made.eval_mode.forward(dict(enumerate(obs)))
    assert [acted[i]["action"] for i in range(32)] == (obs[:, 0] > 0).astype(int).tolist()


@pytest.mark.parametrize("space", ["regression", "reparameterization"])
def test_fits_continuous_actions(space: str) -> None:
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((64, 3)).astype(np.float32)
    samples = Rows({"obs": obs, "action": np.tanh(obs[:, :2])})
    settings: dict[str, Any] = {} if space == "regression" else dict(loss_type=None)
    learn = dict(optimizer="Adam", learning_rate=0.01)
    made = policy(True, model=dict(action_space=space), learn=learn, **settings)
    for _ in range(200):
        made.learn_mode.forward(samples)
    acted = made.eval_mode.forward(dict(enumerate(obs)))
    error = np.stack([acted[i]["action"] for i in range(64)]) - np.tanh(obs[:, :2])
    assert np.abs(error).mean() < 0.05


def test_noise_of_collecting_stays_within_its_bounds() -> None:
    noise = dict(noise=True, noise_sigma=10.0, noise_range=dict(min=-0.1, max=0.2))
    made = policy(True, collect=noise)
    obs = {i: np.zeros(3, np.float32) for i in range(100)}
    best = made.eval_mode.forward(obs)[0]["action"]
    noisy = np.stack([made.collect_mode.forward(obs)[i]["action"] for i in range(100)]) - best
    assert noisy.min() == pytest.approx(-0.1, abs=1e-6)
    assert noisy.max() == pytest.approx(0.2, abs=1e-6)


def test_learning_rate_of_each_epoch() -> None:
    learn = dict(lr_decay=True, learning_rate=0.1, warmup_epoch=2, decay_epoch=3, warmup_lr=0.01)
    made = policy(learn=learn)
    rates = []
    for epoch in range(9):
        made.learn_mode.set_attribute("epoch", epoch)
        rates.append(made._optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.01] * 2 + [0.1] * 3 + [0.01] * 3 + [0.001])


REFUSED: list[tuple[dict[str, Any], str]] = [
    (dict(continuous=True, loss_type=None), "loss_type is missing"),
    (dict(continuous=True, loss_type="huber"), "policy.loss_type = 'huber'"),
    (dict(loss_type="l1_loss"), "for continuous actions"),
    (dict(learn=dict(optimizer="RMS")), "policy.learn.optimizer = 'RMS'"),
    (dict(learn=dict(tanh_mask=True)), "tanh_mask = True has no effect on discrete actions"),
    (dict(learn=dict(compile=True)), "takes effect with policy.learn.optimizer = 'Adam'"),
    (dict(learn=dict(held_out=0.9)), "held_out = 0.9"),
    (dict(reward_norm=True), "does not look at rewards"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        policy(**settings)


def test_early_stop_keeps_the_best_weights() -> None:
    layer = torch.nn.Linear(1, 1, bias=False)
    stop = EarlyStop(layer, patience=2)
    for weight, loss in ((1.0, 0.5), (2.0, 0.3), (3.0, 0.4), (4.0, 0.3)):
        assert not stop.over
        torch.nn.init.constant_(layer.weight, weight)
        stop.note(loss)
    assert stop.over
    again = EarlyStop(layer, patience=2)
    again.load_state_dict(stop.state_dict())
    again.restore()
    assert layer.weight.item() == 2.0
    assert again.best == 0.3


def test_what_was_cloned_goes_on_as_a_q_network() -> None:
    sizes = dict(obs_shape=3, action_shape=2, encoder_hidden_size_list=[8])
    clone = policy(model=dict(encoder_hidden_size_list=[8]))
    q = create_model({"type": "dqn", **sizes})
    q.load_state_dict(clone._model.state_dict())


@pytest.mark.parametrize("kind", ["discrete", "continuous"])
def test_the_actor_of_an_actor_critic_is_cloned(kind: str) -> None:
    rng = np.random.default_rng(0)
    obs = rng.standard_normal((64, 3)).astype(np.float32)
    continuous = kind == "continuous"
    action = np.tanh(obs[:, :2]) if continuous else (obs[:, 0] > 0).astype(np.int64)
    made = policy(
        continuous,
        model=dict(type="vac", action_space=kind, encoder_hidden_size_list=[16]),
        learn=dict(optimizer="Adam", learning_rate=0.01),
        **(dict(loss_type=None) if continuous else {}),
    )
    samples = Rows({"obs": obs, "action": action})
    first = made.held_out(samples)["loss"]
    for _ in range(100):
        made.learn_mode.forward(samples)
    assert made.held_out(samples)["loss"] < first - 0.3
    acted = made.eval_mode.forward(dict(enumerate(obs)))
    got = np.stack([acted[i]["action"] for i in range(64)])
    assert np.abs(got - action).mean() < 0.2
