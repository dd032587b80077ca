"""Steps of a made-up env, and small policy-gradient policies to learn from them.

Rows 0-3 terminate, 4-8 are truncated, 9-15 are cut off, and so on, 16 at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ding.policy import Policy, create_policy
from ding.utils.batch import Rows
from ding.utils.seed import set_pkg_seed

N_OBS, N_ACTION = 3, 4
UNROLL = 8
SMALL: dict[str, dict[str, Any]] = {
    "acer": dict(encoder_hidden_size_list=[16], actor_head_hidden_size=16),
    "pg": dict(encoder_hidden_size_list=[16]),
}


def policy_of(name: str, seed: int = 0, **cfg: Any) -> Any:
    set_pkg_seed(seed)
    action = dict(action_shape=cfg.pop("action_shape", N_ACTION))
    model = {
        **dict(obs_shape=N_OBS, encoder_hidden_size_list=[16]),
        **SMALL.get(name, {}),
        **action,
        **cfg.pop("model", {}),
    }
    learn = {"batch_size": 4 if name in ("impala", "acer") else 16, **cfg.pop("learn", {})}
    collect = cfg.pop("collect", {})
    if name in ("impala", "acer"):
        collect = {"unroll_len": UNROLL, **collect}
    elif name != "pg":
        collect = {"n_sample": 32, **collect}
    return create_policy(dict(type=name, model=model, learn=learn, collect=collect, **cfg))


def steps_of(n: int = 32, seed: int = 0, continuous: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    row = np.arange(n) % 16
    done, end = np.isin(row, (3, 8)), np.isin(row, (3, 8, 15))
    obs = normal(n, N_OBS)
    next_obs = np.concatenate([obs[1:], normal(1, N_OBS)])
    next_obs[end] += 5.0  # true last observations, not the next row
    logit: Any = normal(n, N_ACTION)
    action: Any = rng.integers(0, N_ACTION, n)
    if continuous:
        logit = {"mu": normal(n, 2), "sigma": np.exp(normal(n, 2))}
        action = normal(n, 2)
    return {
        "obs": obs,
        "next_obs": next_obs,
        "action": action,
        "logit": logit,
        "reward": normal(n),
        "done": done,
        "truncated": row == 8,
        "end": end,
    }


def samples_of(policy: Policy, **kwargs: Any) -> Rows:
    samples = policy.collect_mode.get_train_sample(Rows(steps_of(**kwargs)))
    assert isinstance(samples, Rows)
    return Rows(samples.columns)


def losses_of(policy: Policy, samples: Rows, n: int, key: str = "total_loss") -> list[float]:
    losses = []
    for _ in range(n):
        output = policy.learn_mode.forward(samples)
        last = output if isinstance(output, dict) else output[0]
        losses.append(float(torch.as_tensor(last[key])))
    return losses


def weights_of(policy: Policy) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in policy._model.named_parameters()}


def moved(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    """Names of the parameters that changed."""
    return {name for name in before if not torch.equal(before[name], after[name])}


def log_softmax(logit: np.ndarray) -> np.ndarray:
    shifted = logit.astype(np.float64) - logit.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def taken(values: np.ndarray, action: np.ndarray) -> np.ndarray:
    return np.take_along_axis(values, action[..., None], axis=-1)[..., 0]


def in_numpy(policy: Policy, obs: np.ndarray, mode: str) -> dict[str, Any]:
    with torch.no_grad():
        output = policy._model(torch.from_numpy(obs), mode=mode)
    return {name: value.double().numpy() for name, value in output.items()}
