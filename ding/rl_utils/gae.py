"""Generalised advantage estimation, https://arxiv.org/abs/1506.02438."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class gae_data(NamedTuple):  # noqa: N801 (established name)
    """Time first, (T, B) or (T,); `done` None: never, `traj_flag` None: same as `done`."""

    value: Tensor
    next_value: Tensor
    reward: Tensor
    done: Tensor | None
    traj_flag: Tensor | None


def gae(data: gae_data, gamma: float = 0.99, lambda_: float = 0.97) -> Tensor:
    """Advantages (T, B): `done` zeroes the bootstrap, `traj_flag` cuts the recursion."""
    value, next_value, reward, done, traj_flag = data
    if reward.ndim == value.ndim - 1:
        # Several values per reward, e.g. one per agent.
        reward = reward.unsqueeze(-1)
        done = done.unsqueeze(-1) if done is not None else None
        traj_flag = traj_flag.unsqueeze(-1) if traj_flag is not None else None
    done = done.to(reward.dtype) if done is not None else torch.zeros_like(reward)
    ended = traj_flag.to(reward.dtype) if traj_flag is not None else done
    delta = reward + gamma * next_value * (1 - done) - value
    decay = gamma * lambda_ * (1 - ended)
    advantage = torch.empty_like(delta)
    later = torch.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        later = delta[t] + decay[t] * later
        advantage[t] = later
    return advantage


def gae_advantages(
    reward: np.ndarray,
    value: np.ndarray,
    next_value: np.ndarray,
    terminated: np.ndarray,
    end: np.ndarray,
    gamma: float = 0.99,
    lambda_: float = 0.95,
) -> np.ndarray:
    """Advantages of flat columns: pieces of trajectories one after the other, each in time order.

    `end` marks the last row of a piece and cuts the recursion; `terminated` zeroes the bootstrap.
    """
    wide = np.float64
    delta = reward + gamma * next_value.astype(wide) * ~terminated.astype(bool) - value
    # Plain floats: a loop over array elements takes several times as long.
    decay = np.where(end, 0.0, gamma * lambda_).tolist()
    advantage = delta.tolist()
    later = 0.0
    for t in range(len(advantage) - 1, -1, -1):
        advantage[t] = later = advantage[t] + decay[t] * later
    return np.array(advantage, dtype=np.float32)
