"""Batches and small policies to train on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ding.policy import DiscreteSACPolicy, DQNPolicy, Policy, PPOPolicy, SACPolicy
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed

SMALL: dict[str, dict[str, Any]] = {
    "dqn": dict(encoder_hidden_size_list=[16]),
    "ppo": dict(encoder_hidden_size_list=[16]),
    "ppo_continuous": dict(encoder_hidden_size_list=[16]),
    "sac": dict(actor_head_hidden_size=16, critic_head_hidden_size=16),
    "discrete_sac": dict(encoder_hidden_size_list=[16]),
}
CLASSES = {
    "dqn": DQNPolicy,
    "ppo": PPOPolicy,
    "ppo_continuous": PPOPolicy,
    "sac": SACPolicy,
    "discrete_sac": DiscreteSACPolicy,
}
KINDS = list(CLASSES)


def policy_of(kind: str, seed: int = 0, obs: int = 3, **cfg: Any) -> Policy:
    set_pkg_seed(seed)
    continuous = kind in ("sac", "ppo_continuous")
    model = dict(obs_shape=obs, action_shape=2 if continuous else 4, **SMALL[kind])
    model.update(cfg.pop("model", {}))
    learn = dict(batch_size=16, **cfg.pop("learn", {}))
    if kind.startswith("ppo"):
        learn.setdefault("epoch_per_collect", 1)
        cfg["action_space"] = "continuous" if continuous else "discrete"
    name = kind.removesuffix("_continuous")
    return CLASSES[kind](dict(type=name, model=model, learn=learn, **cfg))


def batch_of(kind: str, n: int = 16, obs: int = 3, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    if kind in ("sac", "ppo_continuous"):
        action: Any = np.tanh(normal(n, 2))
    else:
        action = rng.integers(0, 4, n)
    batch = {
        "obs": normal(n, obs),
        "next_obs": normal(n, obs),
        "action": action,
        "reward": normal(n),
        "done": rng.random(n) < 0.3,
        "discount": (rng.random(n) < 0.7).astype(np.float32) * np.float32(0.9),
    }
    if kind.startswith("ppo"):
        batch |= {
            "log_prob": normal(n) * 0.1 - 1.5,
            "value": normal(n),
            "advantage": normal(n),
            "return": normal(n),
            "end": batch["done"],
            "truncated": np.zeros(n, dtype=bool),
        }
    return batch


def losses_of(
    policy: Policy, batch: dict[str, Any], n: int, key: str = "total_loss"
) -> list[float]:
    losses = []
    for _ in range(n):
        output = policy.learn_mode.forward(Rows(batch))
        output = output if isinstance(output, dict) else output[-1]
        losses.append(float(torch.as_tensor(output[key])))
    return losses
