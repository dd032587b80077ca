"""Check of what `step` of an env gives, for all executors; observations are checked as columns.

Executors first look whether a step is plain, which nearly all are, and ask for the check if not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.envs.base_env import BaseEnvTimestep, not_a_timestep
from ding.envs.manager.columns import RowError, check_rewards, described, reward_column

_TIMESTEPS, _FLAGS, _INFOS = {BaseEnvTimestep}, {bool, np.bool_}, {dict}
_TOP = float(np.finfo(np.float32).max)


def checked_step(given: Any, reward_shape: tuple[int, ...] | None = None) -> BaseEnvTimestep:
    """The step in plain types, its observation as it is; an error says what was expected.

    `reward_shape` of one reward; None if nothing is known about it.
    """
    if not isinstance(given, tuple) or len(given) != 4:
        raise not_a_timestep(given)
    obs, reward, done, info = given
    reward = _checked_reward(reward, reward_shape)
    return BaseEnvTimestep(obs, reward, _checked_done(done), _checked_info(info))


def is_plain(step: Any) -> bool:
    """Whether all but observation and reward is what it should be, at a quick look."""
    return type(step) is BaseEnvTimestep and type(step[2]) in _FLAGS and type(step[3]) is dict


def is_number(reward: Any) -> bool:
    """Whether a reward is a finite number at a quick look; False says nothing."""
    return type(reward) is float and -_TOP <= reward <= _TOP


def plain_columns(steps: Sequence[Any]) -> list[tuple[Any, ...]] | None:
    """Fields of all steps if each `is_plain`, several times as quick as one by one."""
    if {*map(type, steps)} != _TIMESTEPS:
        return None
    columns = list(zip(*steps, strict=True))
    plain = {*map(type, columns[2])} <= _FLAGS and {*map(type, columns[3])} == _INFOS
    return columns if plain else None


def _checked_reward(reward: Any, shape: tuple[int, ...] | None) -> Any:
    if reward is None:
        raise RowError("reward is None, expected a number")
    rewards = reward_column([reward])
    if shape is not None and rewards.shape[1:] != shape:
        raise RowError(
            f"reward has shape {rewards.shape[1:]}, but the reward space declares {shape}"
        )
    check_rewards(rewards)
    return rewards[0]


def _checked_done(done: Any) -> bool:
    try:
        flag = np.asarray(done)
    except ValueError:  # Lists of different lengths.
        flag = np.empty(0, dtype=object)
    if flag.size != 1 or flag.dtype.kind not in "biuf":
        raise RowError(
            f"done is {described(done)}, expected one bool for the whole env; of an env with "
            "agents that end apart: whether all have ended (masks in obs tell who has)"
        )
    return bool(flag.item())


def _checked_info(info: Any) -> Mapping[str, Any]:
    if info is None:
        return {}
    if not isinstance(info, Mapping):
        raise RowError(f"info is {described(info)}, expected a dict")
    return info
