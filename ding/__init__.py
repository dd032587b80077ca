"""Decision-intelligence engine: a reinforcement-learning framework on PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ding.agent import Agent
    from ding.entry.training import TrainedRun

__version__ = "0.1.0"
__all__ = ["__version__", "enable_hpc_rl", "load", "train"]

enable_hpc_rl = True
"""Let compiled kernels compute returns and losses where they give the same numbers; set at will."""


def train(env: Any, policy: str | None = None, *args: Any, **options: Any) -> TrainedRun:
    """Train a policy: `ding.train("CartPole-v1", "dqn", steps=1e5)`; see `ding.entry.training`."""
    from ding.entry.training import train

    return train(env, policy, *args, **options)


def load(path: Any, **options: Any) -> Agent:
    """An agent from a run's directory, a checkpoint or a bundle; see `ding.agent.load`."""
    from ding.agent import load

    return load(path, **options)
