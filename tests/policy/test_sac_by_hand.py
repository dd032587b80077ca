"""SAC's gradient steps without autograd, against those with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.model import QAC
from ding.policy import SACPolicy
from ding.policy.sac_by_hand import SACByHand
from ding.torch_utils.optim import gradients
from ding.utils.batch import Batch, Rows
from ding.utils.seed import set_pkg_seed
from policy.continuous import N_ARG, batch_of, shaken_target


class WithAutograd(SACPolicy):
    def _by_hand(self, critic: Any, actor: Any) -> SACByHand | None:
        return None


class OwnValue(SACPolicy):
    """An algorithm of a user."""

    def _next_value(self, batch: Batch) -> torch.Tensor:
        return super()._next_value(batch) - 1.0


def policy_of(cls: type[SACPolicy] = SACPolicy, model: Any = None, **cfg: Any) -> Any:
    set_pkg_seed(0)
    heads = dict(actor_head_hidden_size=16, critic_head_hidden_size=16)
    cfg["model"] = dict(obs_shape=3, action_shape=N_ARG) | heads | cfg.pop("model_cfg", {})
    return cls(dict(type="sac", **cfg), model=model)


def is_by_hand(policy: Any) -> bool:
    return isinstance(getattr(policy._critic_step, "__self__", None), SACByHand)


def learnable(policy: Any, **columns: Any) -> Batch:
    batch = policy._batch(Rows({**batch_of("sac"), **columns}))
    policy._add_noise(batch)
    return batch | {"alpha": torch.tensor(0.3)}


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_are_those_of_the_losses(weighted: bool) -> None:
    policy = policy_of(priority=weighted, priority_IS_weight=weighted)
    assert is_by_hand(policy)
    shaken_target(policy)
    weight = np.linspace(0.1, 2.0, 16, dtype=np.float32)
    batch = learnable(policy, **({"weight": weight} if weighted else {}))
    # One row each where sigma meets its bounds: no gradient goes through there.
    with torch.no_grad():
        policy._model.actor_head.log_sigma_layer.bias.copy_(torch.tensor([2.0, -20.0]))
    for name in ("critic", "actor"):
        optimizer = policy.learn_state[f"optimizer_{name}"]
        loss, metrics = getattr(policy, f"_{name}_loss")(batch)
        wanted = gradients(loss, optimizer.parameters)
        by_hand, metrics_by_hand = getattr(policy, f"_{name}_step")(batch)
        torch.testing.assert_close(by_hand, loss.detach())
        torch.testing.assert_close(metrics_by_hand, metrics)
        for parameter, grad in zip(optimizer.parameters, wanted, strict=True):
            torch.testing.assert_close(parameter.grad, grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("clip", [None, "clip_norm", "clip_value"])
def test_many_updates_lead_to_the_same_weights(clip: str | None) -> None:
    learn = dict(grad_clip_type=clip, grad_clip_value=None if clip is None else 0.1)
    policies = [policy_of(cls, learn=learn) for cls in (SACPolicy, WithAutograd)]
    assert [is_by_hand(policy) for policy in policies] == [True, False]
    for policy in policies:
        torch.manual_seed(0)
        for seed in range(20):
            policy.learn_mode.forward(Rows(batch_of("sac", seed=seed)))
    states = [policy.learn_mode.state_dict() for policy in policies]
    for part in ("model", "target", "temperature"):
        torch.testing.assert_close(states[0][part], states[1][part], rtol=1e-3, atol=1e-4)


def test_bytes_and_double_precision_are_read_as_autograd_reads_them() -> None:
    obs = np.random.default_rng(0).integers(0, 255, (16, 3))
    for dtype in (np.uint8, np.float64):
        policy = policy_of()
        batch = learnable(policy, obs=obs.astype(dtype), next_obs=obs[::-1].astype(dtype))
        loss = policy._critic_loss(batch)[0]
        torch.testing.assert_close(policy._critic_step(batch)[0], loss.detach())


@pytest.mark.parametrize(
    "cfg",
    [
        dict(cls=OwnValue),
        dict(learn=dict(compile=True)),
        dict(model_cfg=dict(activation="tanh")),
        dict(model_cfg=dict(norm_type="LN")),
        dict(model_cfg=dict(encoder_hidden_size_list=[8])),
        dict(model_cfg=dict(twin_critic=False)),
    ],
)
def test_whatever_is_unusual_goes_through_autograd(cfg: dict[str, Any]) -> None:
    policy = policy_of(**cfg)
    assert not is_by_hand(policy)
    if not policy.cfg.learn.compile:
        assert np.isfinite(float(policy._critic_step(learnable(policy))[0]))


def test_models_of_users_go_through_autograd() -> None:
    class Own(QAC):
        """Might compute something else."""

    shape: dict[str, Any] = dict(action_space="reparameterization", twin_critic=True)
    assert not is_by_hand(policy_of(model=Own(3, N_ARG, **shape)))
    hooked = QAC(3, N_ARG, **shape)
    hooked.critic_head.register_forward_hook(lambda *_: None)
    assert not is_by_hand(policy_of(model=hooked))
    assert is_by_hand(policy_of(model=QAC(3, N_ARG, **shape)))


def test_frozen_layers_stay_as_they_are() -> None:
    model = QAC(3, N_ARG, action_space="reparameterization", twin_critic=True)
    frozen = model.actor_head.main[0].weight.requires_grad_(False)
    before = frozen.clone()
    policy = policy_of(model=model)
    policy.learn_mode.forward(Rows(batch_of("sac")))
    assert not is_by_hand(policy)
    assert torch.equal(frozen, before)
