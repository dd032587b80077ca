"""The distributional policies, small, and plain versions of their losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ding.policy import create_policy
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed
from policy.fakes import batch_of

N_ACTION, N_QUANTILE = 4, 5
MODELS: dict[str, dict[str, Any]] = {
    "c51": dict(v_min=-3.0, v_max=3.0, n_atom=7),
    "rainbow": dict(v_min=-3.0, v_max=3.0, n_atom=7),
    "qrdqn": dict(num_quantiles=N_QUANTILE),
    "iqn": dict(num_quantiles=N_QUANTILE, quantile_embedding_size=8),
    "fqf": dict(num_quantiles=N_QUANTILE, quantile_embedding_size=8),
}
KINDS = list(MODELS)


def policy_of(kind: str, seed: int = 0, obs: Any = 3, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    model = dict(obs_shape=obs, action_shape=N_ACTION, encoder_hidden_size_list=[16])
    model |= MODELS[kind] | cfg.pop("model", {})
    learn = {"batch_size": 16, **cfg.pop("learn", {})}
    if kind == "fqf":
        learn = dict(learning_rate_quantile=1e-3, learning_rate_fraction=1e-4) | learn
    return create_policy(dict(type=kind, model=model, learn=learn, **cfg))


def batch_for_loss(policy: Any, seed: int = 0, **columns: Any) -> dict[str, Any]:
    """A batch of tensors, after the target network has become another one than the model."""
    with torch.no_grad():
        for parameter in policy._target.module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return policy._batch(Rows({**batch_of("dqn", seed=seed), **columns}))


def quantile_huber(q: Any, target: Any, tau: Any, kappa: float = 1.0) -> float:
    """Sum over the quantiles `q` (N,) of the mean over `target` (M,)."""
    total = 0.0
    for value, fraction in zip(q, tau, strict=True):
        for goal in target:
            error = goal - value
            size = abs(error)
            huber = 0.5 * error**2 if size <= kappa else kappa * (size - 0.5 * kappa)
            total += abs(fraction - (error < 0)) * huber / kappa / len(target)
    return float(total)


def arrays(output: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {key: value.detach().numpy() for key, value in output.items()}
