"""Façade of generalised advantage estimation."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ding.rl_utils.established.td import discount_of
from ding.rl_utils.gae import generalized_advantages
from ding.rl_utils.td import spread


class gae_data(NamedTuple):  # noqa: N801 (established name)
    """Time first, (T, B) or (T,); `done` None: never, `traj_flag` None: same as `done`."""

    value: Tensor
    next_value: Tensor
    reward: Tensor
    done: Tensor | None
    traj_flag: Tensor | None


def gae(data: gae_data, gamma: float = 0.99, lambda_: float = 0.97) -> Tensor:
    """Advantages (T, B): `done` zeroes the bootstrap, `traj_flag` cuts the recursion.

    Several values per reward, e.g. one per agent, (T, B, agents), give as many advantages.
    """
    value, next_value, reward, done, traj_flag = data
    discount = discount_of(done, gamma, reward)
    lasting = discount if traj_flag is None else discount_of(traj_flag, gamma, reward)
    discount, decay = (
        spread(x, value) if x.ndim else x.expand_as(value) for x in (discount, lambda_ * lasting)
    )
    return generalized_advantages(spread(reward, value), discount, value, next_value, decay)
