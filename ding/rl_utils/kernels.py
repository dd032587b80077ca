"""Compiled recursions and losses; `scan.py` says when they run. Importing this imports numba.

Letters in shapes: T time, B everything else, flattened. Arrays are float32, contiguous and (T, B)
unless said otherwise. Every operation is the one of the plain version, in its order and precision,
without reassociation or fused multiply-add: the recursions give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])

ONE = np.float32(1)
ZERO = np.float32(0)


def _compiled(function: Function) -> Function:
    jit: Any = njit
    try:
        return jit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:
        # No directory to keep the machine code in: compile it in every process.
        return jit(nogil=True, error_model="numpy")(function)


@_compiled
def scan(delta: np.ndarray, decay: np.ndarray, last: np.ndarray) -> np.ndarray:
    """x[t] = delta[t] + decay[t] * x[t + 1], from x[T] = `last` (B,); float64 too."""
    steps, width = delta.shape
    out = np.empty_like(delta)
    later = last.copy()
    for t in range(steps - 1, -1, -1):
        for i in range(width):
            later[i] = delta[t, i] + decay[t, i] * later[i]
            out[t, i] = later[i]
    return out


@_compiled
def scan_gradient(grad: np.ndarray, decay: np.ndarray) -> np.ndarray:
    """Gradient of a loss by `delta` from that by x: the transposed recursion runs forwards."""
    steps, width = grad.shape
    out = np.empty_like(grad)
    for i in range(width):
        out[0, i] = grad[0, i]
    for t in range(1, steps):
        for i in range(width):
            out[t, i] = grad[t, i] + decay[t - 1, i] * out[t - 1, i]
    return out


@_compiled
def gae(
    reward: np.ndarray,
    discount: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    decay: np.ndarray,
) -> np.ndarray:
    steps, width = reward.shape
    out = np.empty_like(reward)
    later = np.zeros_like(reward[0])
    for t in range(steps - 1, -1, -1):
        for i in range(width):
            delta = reward[t, i] + discount[t, i] * next_value[t, i] - value[t, i]
            later[i] = delta + decay[t, i] * later[i]
            out[t, i] = later[i]
    return out


@_compiled
def lambda_returns(
    reward: np.ndarray, discount: np.ndarray, next_value: np.ndarray, rest: float, lambda_: float
) -> np.ndarray:
    """`rest` is 1 - lambda."""
    steps, width = reward.shape
    out = np.empty_like(reward)
    later = next_value[steps - 1].copy()
    for t in range(steps - 1, -1, -1):
        for i in range(width):
            now = reward[t, i] + discount[t, i] * rest * next_value[t, i]
            later[i] = now + discount[t, i] * lambda_ * later[i]
            out[t, i] = later[i]
    return out


@_compiled
def upgo_returns(reward: np.ndarray, value: np.ndarray) -> np.ndarray:
    """`value` is (T + 1, B)."""
    steps, width = reward.shape
    out = np.empty_like(reward)
    later = value[steps].copy()
    for t in range(steps - 1, -1, -1):
        for i in range(width):
            out[t, i] = reward[t, i] + later[i]
            better = reward[t, i] + value[t + 1, i] >= value[t, i]
            later[i] = out[t, i] if better else value[t, i]
    return out


@_compiled
def vtrace_returns(
    rho: np.ndarray,
    c: np.ndarray,
    reward: np.ndarray,
    discount: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
) -> np.ndarray:
    steps, width = reward.shape
    out = np.empty_like(reward)
    later = np.zeros_like(reward[0])
    for t in range(steps - 1, -1, -1):
        for i in range(width):
            error = reward[t, i] + discount[t, i] * next_value[t, i] - value[t, i]
            later[i] = rho[t, i] * error + discount[t, i] * c[t, i] * later[i]
            out[t, i] = value[t, i] + later[i]
    return out


@_compiled
def nstep_sums(reward: np.ndarray, last: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Rewards (T,) from each row to its `last` (T,), times `powers`, added up."""
    out = np.empty_like(reward)
    for t in range(len(reward)):
        total = reward[t]
        for k in range(1, last[t] - t + 1):
            total += powers[k] * reward[t + k]
        out[t] = total
    return out


@_compiled
def quantile_huber(
    q: np.ndarray, target: np.ndarray, tau: np.ndarray, kappa: float
) -> tuple[np.ndarray, np.ndarray]:
    """Loss (B,) of quantiles `q` (B, N) against each of `target` (B, M), and its slope by `q`."""
    size, n = q.shape
    m = target.shape[1]
    loss, slope = np.empty_like(q[:, 0]), np.zeros_like(q)
    total = np.empty_like(q[0])
    half = np.float32(0.5)
    for b in range(size):
        total[:] = ZERO
        for j in range(m):
            for i in range(n):
                error = target[b, j] - q[b, i]
                clipped = min(max(error, -kappa), kappa)
                factor = tau[b, i] if error >= ZERO else ONE - tau[b, i]
                # The Huber loss is clip(e) e - clip(e)^2 / 2 on both of its branches.
                total[i] += factor * (clipped * error - half * clipped * clipped)
                slope[b, i] -= factor * clipped
        loss[b] = total.sum() / (kappa * np.float32(m))
        for i in range(n):
            slope[b, i] /= kappa * np.float32(m)
    return loss, slope
