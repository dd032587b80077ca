"""Rows as users bring them: a number per row may come as `1.0`, `tensor(1.)` or `tensor([1.])`.

Learning wants one array (B,) of them: a (B, 1) beside a (B,) broadcasts to (B, B) without a word.
Where observations have an axis of agents, one agent's numbers keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ding.policy.config import PolicyConfig
from ding.rl_utils.adder import terminated
from ding.utils.batch import Batch, first_leaf, stack
from ding.utils.errors import ConfigError

NUMBERS = ("reward", "done", "truncated", "discount", "value_gamma", "weight", "IS")


def with_plain_numbers(columns: Batch, *, whole_action: bool, obs_shape: Any = None) -> Batch:
    """The columns with (B,) numbers; also the action, if the policy takes one whole number."""
    if "mask" in columns or "obs" not in columns or has_agents(columns["obs"], obs_shape):
        return columns  # sequences (B, T), or (B, agents)
    plain = {name: _plain(name, columns[name]) for name in NUMBERS if name in columns}
    if "action" in columns:
        plain["action"] = _plain_action(columns["action"], whole_action)
    return {**columns, **plain}


def with_team_numbers(columns: Batch) -> Batch:
    """The columns of agents with (B,) numbers where there is one for all of them."""
    return {**columns, **{name: _plain(name, columns[name]) for name in NUMBERS if name in columns}}


def has_agents(obs: Any, obs_shape: Any) -> bool:
    """Whether observations have an axis before those of the shape that one of them has.

    Where the shape is not known (a model of the user's own), one agent is told by its axis of one.
    """
    if obs is None:
        return False
    if isinstance(obs, dict) and "agent_state" in obs:
        return True
    leaf = first_leaf(obs)
    if isinstance(obs_shape, int):
        return leaf.ndim > 2
    if isinstance(obs_shape, Sequence) and not isinstance(obs, dict):
        return leaf.ndim > 1 + len(obs_shape)
    return leaf.ndim > 2 and leaf.shape[1] == 1


def check_columns(columns: Batch, needed: Sequence[str], why: str) -> None:
    missing = [name for name in needed if name not in columns]
    if missing:
        raise ConfigError(f"the samples lack {', '.join(missing)}: {why}")


def with_discount(columns: Batch, cfg: PolicyConfig, has_agents: bool) -> Batch:
    """Add `discount`, zero where an episode terminated.

    Rewards of sequences (B, T) are summed in the loss, so every step has its own. Established rows
    have a reward for each of `nstep` steps, and most of them their `value_gamma`.
    """
    nstep, over = cfg.nstep, terminated(columns, cfg.learn.ignore_done)
    if "mask" in columns:
        lasting = columns.get("value_gamma", np.float32(cfg.discount_factor))
        return {**columns, "discount": ~over * lasting}
    if "episode_id" in columns and nstep > 1:
        raise ConfigError(
            f"policy.nstep = {nstep}, but the samples are single steps; draw them from a buffer "
            f"with nstep = {nstep} and discount_factor = {cfg.discount_factor} (compile_config "
            "sets both)"
        )
    reward = columns["reward"]
    if reward.ndim == 2 and ("value_gamma" in columns or (nstep > 1 and not has_agents)):
        reward = _summed(reward, nstep, cfg.discount_factor)
    lasting = columns.get("value_gamma", np.float32(cfg.discount_factor**nstep))
    return {**columns, "reward": reward, "discount": ~over * lasting}


def _summed(reward: Any, nstep: int, gamma: float) -> np.ndarray:
    """(B, nstep) rewards, zeros after the end, to their discounted sums (B,)."""
    if reward.shape[1] != nstep:
        raise ConfigError(
            f"the samples have {reward.shape[1]} rewards each, but policy.nstep = {nstep}; give "
            f"{nstep} to get_nstep_return_data, or set policy.nstep = {reward.shape[1]}"
        )
    return (reward @ np.power(gamma, np.arange(nstep))).astype(np.float32)


def _plain(name: str, column: Any) -> Any:
    """(B, 1) to (B,), and so what has both forms among its rows."""
    if isinstance(column, np.ndarray) and column.dtype == object:
        return _of_mixed_rows(name, column)
    return column[:, 0] if getattr(column, "ndim", 0) == 2 and column.shape[1] == 1 else column


def _of_mixed_rows(name: str, column: np.ndarray) -> Any:
    rows = [np.asarray(row) for row in column.tolist()]
    for i, row in enumerate(rows):
        if row.size != 1 or row.dtype == object:
            raise ConfigError(
                f"column '{name}': row 0 has the shape {rows[0].shape} and row {i} {row.shape}; "
                "give every row one number, or all of them arrays of one shape"
            )
    return stack([row.reshape(()) for row in rows])


def _plain_action(action: Any, whole: bool) -> Any:
    if isinstance(action, dict):
        if "action_type" not in action:
            return action
        return {**action, "action_type": _plain("action_type", action["action_type"])}
    return _plain("action", action) if whole else action
