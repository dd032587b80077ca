"""The rows of the ledger."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ding.config import override

_CARTPOLE = "dizoo.classic_control.cartpole.config"
_PENDULUM = "dizoo.classic_control.pendulum.config"

FRESH_EPISODES = 100
"""Episodes that judge the final checkpoint; none of them was seen in training."""
FRESH_SEED = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Task:
    """Train until the config's stop value; then the mean of fresh episodes has to be `goal`."""

    name: str
    title: str
    module: str
    goal: float
    limit: int
    """Most env steps."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)

    def configs(self, directory: Path) -> tuple[Any, dict[str, Any]]:
        """main_config with its results in `directory`, and create_config."""
        loaded = import_module(self.module)
        return override(loaded.main_config, {"exp_name": str(directory)}), loaded.create_config

    def digest(self) -> str:
        """Changes with whatever makes the results of an older run incomparable."""
        loaded = import_module(self.module)
        parts = [loaded.main_config, loaded.create_config, self.goal, self.limit]
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


TASKS = (
    Task(
        name="cartpole_dqn",
        title="DQN, CartPole with 200 steps",
        module=f"{_CARTPOLE}.cartpole_dqn_config",
        goal=195.0,
        limit=3_000,
    ),
    Task(
        name="cartpole_v1_dqn",
        title="DQN, CartPole-v1",
        module=f"{_CARTPOLE}.cartpole_v1_dqn_config",
        goal=475.0,
        limit=50_000,
    ),
    Task(
        name="cartpole_ppo",
        title="PPO, CartPole-v1",
        module=f"{_CARTPOLE}.cartpole_ppo_config",
        goal=475.0,
        limit=100_000,
    ),
    Task(
        name="cartpole_discrete_sac",
        title="discrete SAC, CartPole with 200 steps",
        module=f"{_CARTPOLE}.cartpole_discrete_sac_config",
        goal=195.0,
        limit=20_000,
    ),
    Task(
        name="pendulum_sac",
        title="SAC, Pendulum",
        module=f"{_PENDULUM}.pendulum_sac_config",
        goal=-170.0,
        limit=20_000,
    ),
    Task(
        name="pendulum_ppo",
        title="PPO, Pendulum",
        module=f"{_PENDULUM}.pendulum_ppo_config",
        goal=-250.0,
        limit=200_000,
    ),
)
