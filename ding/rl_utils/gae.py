"""Generalised advantage estimation, https://arxiv.org/abs/1506.02438."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ding.rl_utils.scan import ROWS, fused, kernels, reverse_scan


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
    done = torch.zeros_like(reward) if done is None else done
    ended = done if traj_flag is None else traj_flag
    columns = value, next_value, reward, done, ended
    if any(column.shape != value.shape for column in columns):
        columns = torch.broadcast_tensors(*columns)
    advantage = fused("gae", columns, len(reward), (gamma, gamma * lambda_))
    if advantage is not None:
        return advantage.view(columns[0].shape)
    delta = reward + gamma * next_value * (1 - done.to(reward.dtype)) - value
    decay = gamma * lambda_ * (1 - ended.to(reward.dtype))
    return reverse_scan(delta, decay, torch.zeros_like(delta[0]))


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
    terminated, decay = terminated.astype(bool, copy=False), gamma * lambda_
    module = kernels(len(reward), ROWS)
    if module is not None and reward.dtype == value.dtype == next_value.dtype == np.float32:
        columns = map(np.ascontiguousarray, (reward, value, next_value, terminated))
        return module.flat_gae(*columns, np.ascontiguousarray(end, bool), float(gamma), decay)
    wide = np.float64
    delta = reward + gamma * next_value.astype(wide) * ~terminated - value
    # Plain floats: a loop over array elements takes several times as long.
    factor = np.where(end, 0.0, decay).tolist()
    advantage = delta.tolist()
    later = 0.0
    for t in range(len(advantage) - 1, -1, -1):
        advantage[t] = later = advantage[t] + factor[t] * later
    return np.array(advantage, dtype=np.float32)
