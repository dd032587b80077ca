"""Small policies of the further value-based kinds, and what all of them have to pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from ding.policy import create_policy
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed
from policy.fakes import batch_of, losses_of
from policy.test_time_limits import LENGTH, TERMINATED, states, train_off_policy


def small(kind: str, seed: int = 0, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    model = dict(obs_shape=3, action_shape=4, encoder_hidden_size_list=[16], **cfg.pop("model", {}))
    learn = dict(batch_size=16, **cfg.pop("learn", {}))
    return create_policy(dict(type=kind, model=model, learn=learn, **cfg))


def shake_target(policy: Any) -> None:
    """Let the target network differ from the other one."""
    with torch.no_grad():
        for parameter in policy._target.module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))


def values(module: Any, obs: np.ndarray, key: str = "logit") -> Any:
    with torch.no_grad():
        output = module(torch.from_numpy(obs))[key]
    return [q.numpy() for q in output] if isinstance(output, list) else output.numpy()


def check_compiled(kind: str, **learn: Any) -> None:
    clip: dict[str, Any] = dict(grad_clip_type="clip_norm", grad_clip_value=0.1, **learn)
    batch = {**batch_of("dqn"), "weight": np.linspace(0, 1, 16, dtype=np.float32)}
    eager = losses_of(small(kind, learn=clip), batch, 6)
    compiled = losses_of(small(kind, learn=dict(compile=True, **clip)), batch, 6)
    assert compiled == pytest.approx(eager, abs=1e-4)


def check_overfits(policy: Any) -> None:
    batch = batch_of("dqn")
    batch["discount"][:] = 0  # targets that stand still
    losses = losses_of(policy, batch, 150)
    assert losses[-1] < 0.3 * losses[0]


def check_target_is_left_alone(policy: Any) -> None:
    """Gradients reach the network, and the target changes only when it is updated."""
    before = [p.detach().clone() for p in policy._target.module.parameters()]
    own = [p.detach().clone() for p in policy._model.parameters()]
    policy.learn_mode.forward(Rows(batch_of("dqn")))
    assert all(
        torch.equal(a, b) for a, b in zip(before, policy._target.module.parameters(), strict=True)
    )
    assert all(not torch.equal(a, b) for a, b in zip(own, policy._model.parameters(), strict=True))


def check_known_values(
    cls: Any, terminates: bool, learn: dict[str, Any], tolerance: float = 0.7, **cfg: Any
) -> None:
    """Truncated episodes bootstrap from their last observation, terminated ones do not."""
    model = dict(encoder_hidden_size_list=[32])
    learn = dict(batch_size=64, **learn)
    policy = train_off_policy(cls, terminates, 700, model=model, learn=learn, **cfg)
    with torch.no_grad():
        value = policy._model(states())["logit"].amax(dim=1).numpy()
    if terminates:
        assert value[:LENGTH] == pytest.approx(TERMINATED, abs=tolerance)
    else:
        assert value[0] == pytest.approx(10.0, abs=tolerance)
