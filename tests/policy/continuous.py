"""Batches and small policies of the algorithms with continuous and hybrid actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ding.policy import Policy, create_policy
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed

N_TYPE, N_ARG = 3, 2
HYBRID = dict(action_type_shape=N_TYPE, action_args_shape=N_ARG)
HEADS = dict(actor_head_hidden_size=16, critic_head_hidden_size=16)
MODELS: dict[str, dict[str, Any]] = {
    "ddpg": dict(action_shape=N_ARG, **HEADS),
    "td3": dict(action_shape=N_ARG, **HEADS),
    "d4pg": dict(action_shape=N_ARG, v_min=-3.0, v_max=3.0, n_atom=11, **HEADS),
    "paddpg": dict(action_shape=HYBRID, **HEADS),
    "pdqn": dict(action_shape=HYBRID, encoder_hidden_size_list=[16], dueling=False),
}


def policy_of(kind: str, seed: int = 0, obs: Any = 3, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    model = {"obs_shape": obs, **MODELS[kind], **cfg.pop("model", {})}
    learn = dict(batch_size=16, **cfg.pop("learn", {}))
    return create_policy(dict(type=kind, model=model, learn=learn, **cfg))


def batch_of(kind: str, n: int = 16, obs: int = 3, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    action: Any = np.tanh(normal(n, N_ARG))
    if kind in ("pdqn", "paddpg"):
        action = {"action_type": rng.integers(0, N_TYPE, n), "action_args": action}
    return {
        "obs": normal(n, obs),
        "next_obs": normal(n, obs),
        "action": action,
        "reward": normal(n),
        "done": rng.random(n) < 0.3,
        "discount": (rng.random(n) < 0.7).astype(np.float32) * np.float32(0.9),
    }


def shaken_target(policy: Any, seed: int = 1) -> Any:
    """Make the target differ from the model; returns its network."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy._target.module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return policy._target.module


def losses_of(policy: Policy, batch: dict[str, Any], n: int, key: str) -> list[float]:
    outputs = [policy.learn_mode.forward(Rows(batch)) for _ in range(n)]
    return [float(torch.as_tensor(output[key])) for output in outputs]  # type: ignore[call-overload]


def weights_of(policy: Any, *prefixes: str) -> list[torch.Tensor]:
    """Copies of the model's parameters whose names begin so."""
    named = policy._model.named_parameters()
    return [p.detach().clone() for name, p in named if name.startswith(prefixes)]


def same(before: list[torch.Tensor], after: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def learn_critic_first(policy: Any, batch: dict[str, Any]) -> None:
    """An actor that follows a critic from its first guess on ends where tanh is flat."""
    optimizers = [part for name, part in policy.learn_state.items() if "optimizer" in name]
    critic, actor = (optimizer.param_groups[0] for optimizer in optimizers)
    for n, critic["lr"], actor["lr"] in ((200, 0.01, 1e-30), (150, 0.001, 0.01)):
        losses_of(policy, batch, n, "total_loss")
