"""From stacked observations to actions, in NumPy where the network allows.

Letters in shapes: N envs (or envs and agents: any number of leading axes), A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn

from ding.model.numpy_forward import NumpyForward

Forward = Callable[[Any], dict[str, Any]]
ArrayLike = TypeVar("ArrayLike", np.ndarray, Tensor)

_NOT_ZERO = np.float32(1e-30)
"""Draws that round to zero would win over any logit, those of masked actions too."""
_LOG_SQRT_2PI = np.float32(0.5 * np.log(2 * np.pi))


def acting_model(model: nn.Module, mode: str | None = None) -> Forward:
    """`model(obs, mode)` for stacked observations: arrays in, arrays out, no gradients."""
    _use_one_blas_thread()
    return NumpyForward(model, mode)


def eval_view(model: nn.Module) -> nn.Module:
    """The very weights of `model` in `eval` mode, whatever mode the model itself is in."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return deepcopy(model, shared).eval()


@cache
def _use_one_blas_thread() -> None:
    """Limit NumPy to one thread: products of envs and policies are too small for several.

    Threads would wait for each other and for torch's: a frame of a game was scaled down in 780 us
    instead of 100. MKL is left alone, since torch may share it and sets its number of threads.
    """
    ThreadpoolController().select(internal_api="openblas").limit(limits=1)


def epsilon_greedy(
    q: np.ndarray,
    eps: float | np.ndarray,
    rng: np.random.Generator,
    allowed: np.ndarray | None = None,
) -> np.ndarray:
    """(N, A) values to (N,) actions; every env and agent draws for itself whether to explore.

    `eps` is the same for all, or one for each env. Exploring keeps to what the mask `allowed`
    (N, A) allows.
    """
    action = q.argmax(axis=-1)
    # Transposed, a number per env meets the draws of all its agents.
    explore = (rng.random(action.shape).transpose() < eps).transpose()
    n_explore = np.count_nonzero(explore)
    if n_explore:
        if allowed is None:
            action[explore] = rng.integers(0, q.shape[-1], n_explore)
        else:
            action[explore] = random_allowed(allowed[explore], rng)
    return action


def random_allowed(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One action (N,) for each row of a mask (N, A), drawn from those that it allows."""
    return np.where(mask != 0, rng.random(mask.shape), -1.0).argmax(axis=-1)


def sample_categorical(logit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Actions (N,) drawn from (N, A) logits."""
    return with_gumbel_noise(logit, rng).argmax(axis=-1)


def with_gumbel_noise(logit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Logits whose largest one is a draw from their softmax.

    Of exponential clocks with rates p, clock i rings first with probability p_i.
    """
    clock = rng.standard_exponential(logit.shape, dtype=np.float32)
    return logit - np.log(np.maximum(clock, _NOT_ZERO))


def sample_gaussian(mu: np.ndarray, sigma: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Actions (N, A) drawn from independent normals."""
    return mu + sigma * rng.standard_normal(mu.shape, dtype=np.float32)


def categorical_log_prob(logit: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Log-probabilities (N,) of the actions (N,) under (N, A) logits."""
    shifted = logit - np.maximum.reduce(logit, axis=-1, keepdims=True)
    taken = np.take_along_axis(shifted, action[..., None], axis=-1)[..., 0]
    return taken - np.log(np.add.reduce(np.exp(shifted), axis=-1))


def gaussian_log_prob(mu: np.ndarray, sigma: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Log-probabilities (N,) of the actions (N, A) under independent normals."""
    noise = (action - mu) / sigma
    return -(0.5 * noise * noise + np.log(sigma) + _LOG_SQRT_2PI).sum(axis=-1)


def squashed(x: ArrayLike) -> ArrayLike:
    """tanh of an array or a tensor."""
    return x.tanh() if isinstance(x, Tensor) else np.tanh(x)


def noisy(action: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Actions (N, A) in [-1, 1] with normal noise, cut off at these bounds."""
    noise = rng.standard_normal(action.shape, dtype=np.float32)
    return np.clip(action + np.float32(sigma) * noise, -1.0, 1.0)


def hybrid_epsilon_greedy(
    q: np.ndarray,
    args: np.ndarray,
    *,
    eps: float,
    sigma: float,
    rng: np.random.Generator,
    allowed: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Values (N, K) of types and arguments (N, M) to actions; envs that explore draw both.

    Exploring keeps to types that the mask `allowed` (N, K) allows.
    """
    kind, args = q.argmax(axis=-1), noisy(args, sigma, rng)
    explore = rng.random(kind.shape) < eps
    n_explore = np.count_nonzero(explore)
    if allowed is None:
        kind[explore] = rng.integers(0, q.shape[-1], n_explore)
    else:
        kind[explore] = random_allowed(allowed[explore], rng)
    args[explore] = rng.uniform(-1.0, 1.0, (n_explore, args.shape[-1]))
    return {"action_type": kind, "action_args": args}
