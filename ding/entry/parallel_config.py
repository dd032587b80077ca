"""Configs of parallel runs: serial ones, and those of the established parallel mode."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ding.config import override
from ding.config.tree import MISSING, lookup
from ding.parallel.fleet import Fleet
from ding.parallel.sharded_learning import check_shared_config
from ding.policy import get_policy_cls
from ding.policy.bc import BehaviourCloningPolicy
from ding.utils.errors import ConfigError
from ding.worker import get_serial_collector_cls
from ding.worker.battle.collector import BattleCollector

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


def translated(main: Any, create: Any, system: Any) -> tuple[Any, Any, Fleet]:
    """A config for parallel runs as one that serial runs understand, and what it says besides."""
    main, create = override(main, {}), override(create, {})
    cores = os.cpu_count() or 1
    collectors = _number(main, "policy.collect.collector.collector_num", max(2, cores - 1))
    learners = _number(main, "policy.learn.learner.learner_num", 1)
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
    lag = _above_zero(system, "max_policy_lag", float("inf"), "updates")
    wishes = _flag(system, "head_start", True), _flag(system, "dashboard", False)
    return main, create, Fleet(collectors, _timeouts(system), learners, lag, *wishes)


def in_one_process(main: Any, create: Any, system: Any) -> tuple[Any, Any]:
    """The same config for serial runs and evaluations, if it is one of a parallel run."""
    numbers = ("policy.collect.collector.collector_num", "policy.learn.learner.learner_num")
    if not system and all(lookup(main, path) is MISSING for path in numbers):
        return main, create
    main, create, _ = translated(main, create, system)
    return main, create


def _number(main: Any, path: str, default: int) -> int:
    number = _taken(main, path, default)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ConfigError(f"{path} = {number!r}: must be a whole number, 1 at least")
    return number


def _timeouts(system: Mapping[str, Any] | None) -> dict[str, float]:
    return {
        role: _above_zero(system, name, _TIMEOUT, "seconds") for role, name in _TIMEOUTS.items()
    }


def _flag(system: Mapping[str, Any] | None, name: str, default: bool) -> bool:
    value = _setting(system, name, default)
    if not isinstance(value, bool):
        raise ConfigError(f"system_config.coordinator.{name} = {value!r}: must be True or False")
    return value


def _setting(system: Mapping[str, Any] | None, name: str, default: Any) -> Any:
    return ((system or {}).get("coordinator") or {}).get(name, default)


def _above_zero(system: Mapping[str, Any] | None, name: str, default: float, unit: str) -> float:
    value = _setting(system, name, default)
    if not isinstance(value, (int, float)) or not value > 0:
        raise ConfigError(f"system_config.coordinator.{name} = {value!r}: must be {unit} above 0")
    return float(value)


def _taken(config: Any, path: str, default: Any) -> Any:
    """Take a setting out of a nested config."""
    *parents, name = path.split(".")
    for parent in parents:
        config = config.get(parent, {}) if isinstance(config, Mapping) else {}
    return config.pop(name, default) if isinstance(config, dict) else default


def timeout_name(role: str) -> str:
    """What sets how long a service of this role may take."""
    return _TIMEOUTS[role]


def check_parallel(cfg: Any, fleet: Fleet) -> None:
    """Refuse what parallel runs can't do."""
    policy = cfg.policy
    if cfg.callbacks:
        raise ConfigError(
            f"callbacks = {cfg.callbacks}: only serial runs (-m serial) call them; leave them out"
        )
    if policy.collect.get("n_sample") is None and not policy.on_policy:
        raise ConfigError(
            f"policy '{policy.type}' stores whole episodes (policy.collect.n_episode), which "
            "parallel runs can't do; use -m serial"
        )
    if issubclass(get_serial_collector_cls(policy.collect.collector), BattleCollector):
        raise ConfigError(
            f"policy.collect.collector.type = '{policy.collect.collector.type}': games of two are "
            "played in one process; use -m selfplay"
        )
    if fleet.learner_num > 1:
        check_shared_config(policy, fleet.learner_num)
    if issubclass(get_policy_cls(policy), BehaviourCloningPolicy):
        raise ConfigError(f"policy '{policy.type}' learns from demonstrations; use -m serial_bc")
