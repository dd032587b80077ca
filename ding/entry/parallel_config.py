"""Configs of parallel runs: serial ones, and those of the established parallel mode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ding.config import override
from ding.utils.errors import ConfigError

# Settings of the former transport and of its workers: what they set is built in now.
_FORMER = (
    "policy.learn.learner.send_policy_freq",
    "policy.collect.collector.update_policy_second",
    "policy.other.commander.collector_task_space",
    "policy.other.commander.learner_task_space",
    "policy.other.commander.eval_interval",
    "env.collector_episode_num",
)
_FORMER_PARTS = ("comm_learner", "comm_collector", "learner", "commander", "coordinator")
_FORMER_TYPES = {"zergling": "sample", "marine": "sample"}
# Settings of system_config.coordinator by role. A chunk of a slow simulator may well take minutes.
_TIMEOUTS = {
    "collector": "collector_task_timeout",
    "learner": "learner_task_timeout",
    "buffer": "learner_task_timeout",
    "evaluator": "learner_task_timeout",
}
_TIMEOUT = 1800.0


@dataclass(frozen=True)
class Fleet:
    """How many of what, and how long one may take to answer."""

    collector_num: int
    timeouts: dict[str, float]


def translated(main: Any, create: Any, system: Any) -> tuple[Any, Any, Fleet]:
    """A config for parallel runs as one that serial runs understand, and what it says besides."""
    main, create = override(main, {}), override(create, {})
    cores = os.cpu_count() or 1
    number = _taken(main, "policy.collect.collector.collector_num", max(2, cores - 1))
    learners = _taken(main, "policy.learn.learner.learner_num", 1)
    if not isinstance(number, int) or number < 1:
        raise ConfigError(
            f"policy.collect.collector.collector_num = {number!r}: must be a whole number, 1 at "
            "least"
        )
    if learners != 1:
        raise ConfigError(
            f"policy.learn.learner.learner_num = {learners!r}: several learners are not part of "
            "this version; set it to 1"
        )
    for path in _FORMER:
        _taken(main, path, None)
    episodes = _taken(main, "env.evaluator_episode_num", None)
    if episodes is not None:
        env = main["env"]
        env.setdefault("n_evaluator_episode", episodes * env.get("evaluator_env_num", 1))
    if system or "comm_collector" in create:
        for name in _FORMER_PARTS:
            create.pop(name, None)
        collector = create.get("collector", {})
        if collector.get("type") in _FORMER_TYPES:
            create["collector"] = {"type": _FORMER_TYPES[collector["type"]]}
    return main, create, Fleet(number, _timeouts(system))


def _timeouts(system: Mapping[str, Any]) -> dict[str, float]:
    given = system.get("coordinator") or {}
    for name in set(_TIMEOUTS.values()) & set(given):
        if not isinstance(given[name], (int, float)) or given[name] <= 0:
            raise ConfigError(
                f"system_config.coordinator.{name} = {given[name]!r}: must be seconds above 0"
            )
    return {role: float(given.get(name, _TIMEOUT)) for role, name in _TIMEOUTS.items()}


def _taken(config: Any, path: str, default: Any) -> Any:
    """Take a setting out of a nested config."""
    *parents, name = path.split(".")
    for parent in parents:
        config = config.get(parent, {}) if isinstance(config, Mapping) else {}
    return config.pop(name, default) if isinstance(config, dict) else default


def timeout_name(role: str) -> str:
    """What sets how long a service of this role may take."""
    return _TIMEOUTS[role]


def check_parallel(cfg: Any) -> None:
    """Refuse what parallel runs can't do."""
    if cfg.policy.collect.get("n_sample") is None:
        name = cfg.policy.type
        raise ConfigError(
            f"policy '{name}' collects whole episodes (policy.collect.n_episode), which parallel "
            "runs can't do; use -m serial"
        )
