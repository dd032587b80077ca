"""The suite of defaults: an env's id, a policy's name and a number of steps, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ding.config import override
from ledger.tasks import OwnMeasure, Task

_JUDGE = OwnMeasure(function="fresh_return", title="return of 100 fresh episodes")


@dataclass(frozen=True, kw_only=True)
class DefaultTask(Task):
    """What `ding train ENV POLICY --steps STEPS` gives; `goal` is clearly beyond random play."""

    policy: str
    env: dict[str, Any] = field(hash=False)
    """The section `env`, with its `env_id`."""

    def configs(self, directory: Path) -> tuple[Any, dict[str, Any]]:
        main, create = default_configs(self.env, self.policy, self.limit)
        return override(main, {"exp_name": str(directory)}), create

    def shown(self, mean: float) -> str:
        return f"{mean:.1f}" if abs(self.goal) >= 10 else f"{mean:.2f}"

    @property
    def probe_name(self) -> str:
        return json.dumps({"env": self.env, "policy": self.policy, "steps": self.limit})

    def digest(self) -> str:
        return hashlib.sha256(f"{self.probe_name} {self.goal}".encode()).hexdigest()[:16]

    def step_limit(self) -> int | None:
        """Most steps of an episode, where the env itself has no limit."""
        return default_configs(self.env, self.policy, self.limit)[0]["env"].get("max_episode_steps")


def default_configs(
    env: dict[str, Any], policy: str, steps: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configs of a first run that no return ends."""
    from ding.entry.predefined import predefined_config

    main, create = predefined_config(env["env_id"], policy, steps)
    settings = {f"env.{key}": value for key, value in env.items() if key != "env_id"}
    return override(main, {"env.stop_value": float("inf"), **settings}), create


@dataclass(frozen=True)
class _Case:
    env_id: str
    steps: int
    goal: float
    policies: str
    """Of which three seeds are run; what else fits the spaces is run in two envs with one."""
    others: str = ""
    kwargs: dict[str, Any] | None = None


_DISCRETE = "dqn rainbow ppo a2c"
_CONTINUOUS = "ppo a2c sac td3"
_CASES = (
    _Case(
        "CartPole-v1",
        50_000,
        250.0,
        _DISCRETE,
        "averaged_dqn c51 qrdqn iqn fqf mdqn sql sqn r2d2 ngu ppo_offpolicy ppo_recurrent ppg pg "
        "impala acer discrete_sac",
    ),
    _Case(
        "Acrobot-v1",
        100_000,
        -150.0,
        _DISCRETE,
        "c51 qrdqn iqn mdqn sql ppo_offpolicy ppg impala acer discrete_sac",
    ),
    _Case("MountainCarContinuous-v0", 50_000, 50.0, _CONTINUOUS),
    _Case("Pendulum-v1", 30_000, -400.0, _CONTINUOUS, "ddpg d4pg"),
    _Case("LunarLander-v3", 200_000, 0.0, _DISCRETE),
    _Case("LunarLander-v3", 100_000, 0.0, "ppo sac td3", kwargs={"continuous": True}),
    _Case("FrozenLake-v1", 50_000, 0.5, _DISCRETE, kwargs={"is_slippery": False}),
    _Case("CliffWalking-v1", 50_000, -50.0, _DISCRETE),
    _Case("InvertedDoublePendulum-v5", 50_000, 1_000.0, _CONTINUOUS, "ddpg d4pg"),
    _Case("HalfCheetah-v5", 100_000, 500.0, "ppo sac td3"),
    _Case("MiniGrid-Empty-8x8-v0", 100_000, 0.5, "dqn ppo"),
)


def _tasks(case: _Case) -> list[DefaultTask]:
    name = case.env_id.rsplit("-v", 1)[0].lower().replace("-", "_")
    if case.kwargs and "continuous" in case.kwargs:
        name += "_continuous"
    env = {"env_id": case.env_id} | ({"env_kwargs": case.kwargs} if case.kwargs else {})
    seeds = dict.fromkeys(case.policies.split(), (0, 1, 2)) | dict.fromkeys(
        case.others.split(), (0,)
    )
    return [
        DefaultTask(
            name=f"defaults_{name}_{policy}",
            title=f"{policy}, {name}",
            module="",
            goal=case.goal,
            limit=case.steps,
            seeds=numbers,
            measure=_JUDGE,
            policy=policy,
            env=env,
        )
        for policy, numbers in seeds.items()
    ]


DEFAULTS = tuple(task for case in _CASES for task in _tasks(case))
