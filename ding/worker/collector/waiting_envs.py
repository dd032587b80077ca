"""Envs that wait for an action: which ones, whether others will, and answers in their order."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ding.envs.manager.slot import EnvState
from ding.utils.batch import ByEnv, take

# Seconds between two looks at a manager that cannot be waited for ...
_PAUSE = 0.0005
# ... and between two looks whether a wait is in vain.
_PATIENCE = 0.1
_PLAYS = (EnvState.INIT, EnvState.RUN, EnvState.RESET)


def can_overlap(env: Any) -> bool:
    """Whether some envs of this manager can step while others wait for their actions."""
    # Not from the object: a manager looks for unknown names in its envs.
    return bool(getattr(type(env), "overlaps", False))


def await_obs(env: Any, active: np.ndarray | None = None) -> ByEnv:
    """Observations of the envs that wait for an action, at least one; `active` names who counts."""
    obs = only_active(env.ready_obs, active)
    while not len(obs):
        check_alive(env, active)
        if hasattr(type(env), "recv") and not env.in_flight:
            env.recv(_PATIENCE)  # Only resets can come.
        else:
            time.sleep(_PAUSE)
        obs = only_active(env.ready_obs, active)
    return obs


def only_active(obs: ByEnv, active: np.ndarray | None) -> ByEnv:
    """Observations of the envs that still play."""
    if active is None:
        return obs
    chosen = active[obs.ids]
    if False not in chosen.tolist():
        return obs
    return rows_at(obs, chosen.nonzero()[0])


def rows_at(obs: ByEnv, index: np.ndarray) -> ByEnv:
    return ByEnv(obs.ids[index], take(obs.stacked, index))


def check_alive(env: Any, active: np.ndarray | None = None) -> None:
    """Complain if none of these envs will ever wait for an action again."""
    states = {i: s for i, s in env.env_state.items() if active is None or active[i]}
    if not any(state in _PLAYS for state in states.values()):
        listed = ", ".join(f"{i}: {state.name}" for i, state in states.items())
        raise RuntimeError(
            f"no env can go on ({listed}); after DONE, call reset() or raise episode_num; after "
            "NEED_RESET, call reset() or set auto_reset"
        )


def check_answered(env: Any, asked: np.ndarray, answered: np.ndarray) -> None:
    """Complain if a step left envs out: without `recv`, their steps come only if others act."""
    if answered is not asked and not set(asked.tolist()) <= set(answered.tolist()):
        raise RuntimeError(
            f"{type(env).__name__}.step answered for envs {answered.tolist()} of "
            f"{asked.tolist()}; for whole episodes it must answer for all of them, or have "
            "`overlaps = True` and `send`, `recv`, `waiting_obs` and `in_flight`"
        )


def in_order(asked: np.ndarray, env_id: np.ndarray, output: Any) -> tuple[np.ndarray, Any]:
    """Answers of the policy in the order of the envs that it was asked for."""
    if sorted(env_id.tolist()) != sorted(asked.tolist()):
        raise RuntimeError(
            f"the policy was asked for actions of envs {asked.tolist()}, but its forward gave "
            f"some for {env_id.tolist()}; it must return {{env_id: output}} for all of them"
        )
    order = np.argsort(env_id)
    return asked, take(output, order[np.searchsorted(env_id, asked, sorter=order)])
