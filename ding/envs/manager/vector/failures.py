"""What becomes of a vector env's failures: steps to be dropped, counts, readable errors."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from typing import Any

import numpy as np

from ding.envs.base_env import VecStep
from ding.envs.manager.columns import RowError, leaves, nan_message
from ding.envs.manager.deadline import env_error
from ding.utils.batch import take
from ding.utils.errors import EnvError

WHOLE = -1
"""Failures of the vector env as a whole are counted under this id."""


class NaNError(RowError):
    """Some envs gave NaN."""

    def __init__(self, ids: list[int]) -> None:
        super().__init__(f"envs {ids}: {nan_message('obs or reward')}")
        self.ids = ids


def causes_of(error: Exception) -> list[int]:
    """The envs that failed, as far as one can tell."""
    return error.ids if isinstance(error, NaNError) else [WHOLE]


def nan_rows(obs: Any, reward: np.ndarray, ids: np.ndarray) -> list[int]:
    """Ids of the envs with NaN in their observation or reward."""
    broken = np.isnan(reward)
    for _, leaf in leaves(obs, ""):
        if leaf.dtype.kind == "f":
            broken = broken | np.isnan(leaf).reshape(len(ids), -1).any(axis=1)
    return ids[broken].tolist()


def broken_step(obs: Any, ids: np.ndarray, error: Exception) -> VecStep:
    """Stands in for a step that failed; `obs` is what all envs showed before it."""
    infos = [{"abnormal": True, "error": f"{type(error).__name__}: {error}"} for _ in ids]
    no, zeros = np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=np.float32)
    return VecStep(take(obs, ids), zeros, no, infos, no.copy(), ~no, ids)


def report(error: Exception, seeds: list[int | None], actions: Iterable[Any]) -> str:
    recent = [a.tolist() if isinstance(a, np.ndarray) else a for a in actions]
    return f"vector env step failed: {error!r} (seeds {seeds}, last actions {recent})"


def env_failure(message: str, cause: Exception) -> EnvError:
    """The error that ends the run; it names the place in the env's code."""
    frames = traceback.extract_tb(cause.__traceback__)
    if not frames or isinstance(cause, RowError):
        return env_error(message, cause)
    last = frames[-1]
    return env_error(f"{message}; raised in {last.filename}:{last.lineno} ({last.name})", cause)
