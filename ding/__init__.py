"""Decision-intelligence engine: a reinforcement-learning framework on PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ding.agent import Agent

__version__ = "0.1.0"
__all__ = ["__version__", "enable_hpc_rl", "load"]

enable_hpc_rl = True
"""Let compiled kernels compute returns and losses where they give the same numbers; set at will."""


def load(path: Any, **options: Any) -> Agent:
    """An agent from a run's directory, a checkpoint or a bundle; see `ding.agent.load`."""
    from ding.agent import load

    return load(path, **options)
