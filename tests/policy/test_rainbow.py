from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import create_policy
from ding.torch_utils.noise import NoiseLinearLayer
from ding.utils.batch import ByEnv, Rows, stacked_of
from ding.utils.errors import ConfigError
from policy.distributional import policy_of
from policy.fakes import batch_of


def noises(model: torch.nn.Module) -> list[torch.Tensor]:
    layers = [layer for layer in model.modules() if isinstance(layer, NoiseLinearLayer)]
    assert len(layers) == 4  # two of the advantage, two of the value
    return [noise.clone() for layer in layers for noise in (layer.in_noise, layer.out_noise)]


def differ(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return not any(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_every_update_has_noise_of_its_own() -> None:
    policy = policy_of("rainbow")
    seen = [noises(policy._model), noises(policy._target.module)]
    for _ in range(2):
        policy.learn_mode.forward(Rows(batch_of("dqn")))
        seen += [noises(policy._model), noises(policy._target.module)]
    for i, one in enumerate(seen[1:], 1):
        assert all(differ(one, other) for other in seen[1:i])


def test_noise_is_learned() -> None:
    policy = policy_of("rainbow", learn=dict(learning_rate=0.01))
    before = {n: p.detach().clone() for n, p in policy._model.named_parameters()}
    policy.learn_mode.forward(Rows(batch_of("dqn")))
    for name, parameter in policy._model.named_parameters():
        assert not torch.equal(parameter, before[name]), name


def test_noise_explores_and_evaluation_has_none() -> None:
    policy = policy_of("rainbow")
    obs = batch_of("dqn")["obs"]
    stacked = ByEnv(np.arange(16), obs)
    collected = [stacked_of(policy.collect_mode.forward(stacked))[1]["action"] for _ in range(20)]
    assert len({tuple(action) for action in collected}) > 1
    evaluated = [stacked_of(policy.eval_mode.forward(stacked))[1]["action"] for _ in range(3)]
    assert policy._model.training
    with torch.no_grad():
        calm = policy._model.eval()(torch.from_numpy(obs))["logit"].argmax(dim=1).numpy()
    assert all(np.array_equal(action, calm) for action in evaluated)


def test_epsilon_is_an_extra() -> None:
    policy = policy_of("rainbow")
    assert policy.command_mode.get_setting_collect({"envstep": 0}) == {"eps": 0.0}
    eps = dict(type="linear", start=1.0, end=0.5, decay=100)
    policy = policy_of("rainbow", other=dict(eps=eps))
    assert policy.command_mode.get_setting_collect({"envstep": 50})["eps"] == pytest.approx(0.75)


def test_defaults_are_the_parts_of_rainbow() -> None:
    policy: Any = create_policy(dict(type="rainbow", model=dict(obs_shape=3, action_shape=2)))
    cfg = policy.cfg
    assert (cfg.nstep, cfg.priority, cfg.priority_IS_weight, cfg.learn.double_q) == (
        3,
        True,
        True,
        True,
    )


def test_without_any_exploration() -> None:
    with pytest.raises(ConfigError, match=r"policy.model.noise = False .*policy.other.eps"):
        policy_of("rainbow", model=dict(noise=False))
    policy_of("rainbow", model=dict(noise=False), other=dict(eps=dict(start=0.5)))
