"""Learning from unrolls: pieces of T steps of any number of episodes, replayed as a whole.

Episodes may end inside a piece: there the value of the true last observation counts, not that of
the next row. Letters in shapes: T time, B batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from ding.policy.config import CollectConfig, OtherConfig, PolicyConfig, check_buffer
from ding.rl_utils.adder import get_train_sample, terminated
from ding.utils.batch import Batch, Rows, columns_of, tree_map
from ding.utils.errors import ConfigError

COLUMNS = ("obs", "next_obs", "action", "logit", "reward", "discount", "end")


@dataclass(frozen=True, kw_only=True)
class UnrollCollectConfig(CollectConfig):
    n_sample: int | None = 16
    """Unrolls per collect."""
    unroll_len: int = 32
    """Steps per unroll."""


@dataclass(frozen=True, kw_only=True)
class UnrollOtherConfig(OtherConfig):
    replay_buffer: dict[str, Any] = field(default_factory=lambda: dict(replay_buffer_size=1000))
    """Settings of the replay buffer, which holds unrolls."""


def check_unrolls(cfg: Any) -> None:
    """Refuse collectors that hand out anything else."""
    check_buffer(cfg)
    policy = cfg["policy"]
    if policy["collect"]["collector"].get("type") == "episode":
        raise ConfigError(
            f"policy '{policy['type']}' learns from pieces of unroll_len steps, but an episode "
            "collector gives whole episodes; set policy.collect.n_sample instead of n_episode"
        )


def check_replay(cfg: PolicyConfig, name: str) -> None:
    """Settings that every algorithm on unrolls refuses."""
    if cfg.collect.unroll_len < 2:
        raise ConfigError(
            f"policy.collect.unroll_len = {cfg.collect.unroll_len}: must be at least 2 in {name}"
        )
    if cfg.nstep != 1:
        raise ConfigError(f"policy.nstep has no effect in {name}; set policy.collect.unroll_len")
    check_known_behaviour(cfg, name)


def check_known_behaviour(cfg: PolicyConfig, name: str) -> None:
    if cfg.random_collect_size:
        raise ConfigError(
            f"policy.random_collect_size = {cfg.random_collect_size}: {name} corrects for the "
            "probabilities of its own actions, which random ones do not have; leave it out"
        )


def unroll_samples(transitions: Sequence[Any], cfg: PolicyConfig) -> Sequence[Any]:
    """Pieces of `unroll_len` steps, columns (n, T, ...); the last one may begin in the one before.

    `discount` is zero where an episode terminated. `end` is where what follows is another piece.
    """
    steps = columns_of(transitions)
    over = terminated(steps, cfg.learn.ignore_done)
    chosen = {
        **{name: steps[name] for name in ("obs", "next_obs", "action", "logit", "reward", "end")},
        "discount": ~over * np.float32(cfg.discount_factor),
    }
    unroll_len = cfg.collect.unroll_len
    last_fn = "last" if len(over) >= unroll_len else "drop"
    return get_train_sample(Rows(chosen), unroll_len, last_fn) or Rows()


def time_first(batch: Batch) -> Batch:
    """(B, T, ...) -> (T, B, ...) of what the losses read; importance weights stay (B,)."""
    kept = {name: tree_map(_swapped, batch[name]) for name in COLUMNS}
    return kept | {"weight": batch["weight"]} if "weight" in batch else kept


def _swapped(column: Tensor) -> Tensor:
    return column.transpose(0, 1).contiguous()
