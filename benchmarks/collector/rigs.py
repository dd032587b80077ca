"""How one library is driven: `collect` for the race, `step` for the overhead, and `close`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from benchmarks.collector.workload import Infer, Load


@dataclass(frozen=True)
class Rig:
    """A library that is ready to go; its envs have begun their first episodes."""

    work: Callable[[], int]
    """Collect at least N_SAMPLE samples, or step all envs once; gives how many env steps it was."""
    close: Callable[[], object]


@dataclass(frozen=True)
class Entrant:
    title: str
    race: str | None
    """'module:function' of the rig that collects; None if it does not race."""
    overhead: str | None
    """The same for the rig that steps envs."""
    ours: bool = False


_OURS, _PEERS = "benchmarks.collector.ours", "benchmarks.collector.peers"

ENTRANTS = {
    # No library at all: what this machine makes of the sleeps.
    "bare": Entrant("threads that only sleep", f"{_OURS}:race_bare", None, ours=True),
    "base": Entrant("ours, base", f"{_OURS}:race_base", f"{_OURS}:step_base", ours=True),
    "sync": Entrant("ours, sync", f"{_OURS}:race_sync", f"{_OURS}:step_sync", ours=True),
    "async": Entrant("ours, async, 1 inference", f"{_OURS}:race_async", None, ours=True),
    "overlap": Entrant("ours, async", f"{_OURS}:race_overlap", f"{_OURS}:step_async", ours=True),
    "spare": Entrant("ours, async, spare envs", f"{_OURS}:race_spare", None, ours=True),
    "tianshou-sync": Entrant(
        "Tianshou sync", f"{_PEERS}:tianshou_sync", f"{_PEERS}:tianshou_pipe_steps"
    ),
    "tianshou-shared": Entrant("Tianshou, shared memory", None, f"{_PEERS}:tianshou_shared_steps"),
    "tianshou-async": Entrant("Tianshou async, wait 7", f"{_PEERS}:tianshou_async", None),
    "sb3": Entrant("SB3 SubprocVecEnv", f"{_PEERS}:sb3", f"{_PEERS}:sb3_steps"),
    "gymnasium": Entrant(
        "Gymnasium AsyncVectorEnv", f"{_PEERS}:gymnasium", f"{_PEERS}:gymnasium_steps"
    ),
    "torchrl": Entrant("TorchRL parallel", f"{_PEERS}:torchrl", f"{_PEERS}:torchrl_steps"),
    "torchrl-async": Entrant("TorchRL async", f"{_PEERS}:torchrl_async", None),
}


def race_rig(name: str, load: Load, infer: Infer) -> Rig:
    return _function(ENTRANTS[name].race)(load, infer)


def overhead_rig(name: str, load: Load) -> Rig:
    return _function(ENTRANTS[name].overhead)(load)


def _function(path: str | None) -> Callable[..., Rig]:
    assert path is not None
    module, name = path.split(":")
    return getattr(import_module(module), name)
