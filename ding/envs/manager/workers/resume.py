"""The state of a manager whose envs live in workers, and how to go on from it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from ding.envs.manager.old_interface import EnvState
from ding.utils.errors import EnvError

if TYPE_CHECKING:
    from ding.envs.manager.subprocess import SubprocessEnvManager

_SAVED = (
    *("episodes", "renewals", "reset_params", "failures", "seeds", "dynamic", "unsent"),
    *("unit_of", "waiting", "busy", "fresh", "has_fresh", "ready_units", "ended", "fits"),
)


def state_of(manager: SubprocessEnvManager) -> dict[str, Any]:
    """Steps under way end first; they are part of the state until they are received."""
    manager._check_open()
    manager._settle()
    return {
        "envs": _pickled_envs(manager),
        **{name: deepcopy(getattr(manager, f"_{name}")) for name in _SAVED},
        "states": [int(state) for state in manager._states],  # checkpoints take plain data only
        "results": manager._results.saved(),
        "flights": manager._flights.state_dict(),
    }


def _pickled_envs(manager: SubprocessEnvManager) -> list[bytes] | None:
    units = range(len(manager._renewals))
    try:
        return manager._call_units(units, "save", [()] * len(units))
    except EnvError as error:
        manager._tell_unpicklable(error)
        return None


def resume(manager: SubprocessEnvManager, state: Mapping[str, Any]) -> None:
    manager._check_state(state)
    if len(state["renewals"]) != len(manager._renewals):
        raise ValueError("the state is of a manager with another setting of spare_envs")
    manager.close()
    manager._fits = state["fits"]
    manager._start("obs" in state["results"]["block"])
    for name in _SAVED:
        setattr(manager, f"_{name}", deepcopy(state[name]))
    states = [EnvState(value) for value in state["states"]]
    if state["envs"] is None:
        _begin_anew(manager)
        manager._waiting &= np.array(states) == EnvState.RUN
        manager._cached = None
    else:
        _go_on(manager, state)
    manager._states = states


def _go_on(manager: SubprocessEnvManager, state: Mapping[str, Any]) -> None:
    units = range(len(manager._renewals))
    for unit in units:
        manager._prepare(unit)
    manager._call_units(units, "load", [(env,) for env in state["envs"]])
    manager._flights.load_state_dict(state["flights"])
    manager._results.restore(state["results"])
    for i in range(manager.env_num):
        manager._allow_reset(i, int(manager._unit_of[i]))


def _begin_anew(manager: SubprocessEnvManager) -> None:
    """New episodes, and with dynamic seeds other ones than the run began with."""
    manager._forget_steps(set(range(manager.env_num)))
    for unit in manager._seeded_units():
        manager._unsent.add(unit)
        manager._renewals[unit] += manager._dynamic[unit % manager.env_num] is not False
    for unit in range(len(manager._renewals)):
        manager._prepare(unit)
        manager._begin_reset(unit)
    manager._settle()
