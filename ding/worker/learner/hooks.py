"""Jobs done at fixed moments of learning: load, save, log, and whatever users add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import torch

from ding.torch_utils.distributed import current
from ding.utils.errors import ConfigError, nearest
from ding.utils.log import table

POSITIONS = ("before_run", "after_run", "before_iter", "after_iter")


class Hook(ABC):
    """Something to call; of several at one position the lower priority number runs first."""

    def __init__(self, name: str, priority: float = 100, **kwargs: Any) -> None:
        if priority < 0:
            raise ValueError(f"hook '{name}': priority {priority} must not be negative")
        self.name = name
        self.priority = priority

    @abstractmethod
    def __call__(self, engine: Any) -> None: ...


class LearnerHook(Hook):
    """A hook of a learner, called at its `position`."""

    def __init__(
        self,
        name: str,
        priority: float = 100,
        position: str = "after_iter",
        ext_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, priority, **kwargs)
        if position not in POSITIONS:
            raise ConfigError(f"hook '{name}': position '{position}'{nearest(position, POSITIONS)}")
        self.position = position
        self.ext_args = dict(ext_args or {})


class LoadCkptHook(LearnerHook):
    """Start from a checkpoint."""

    def __call__(self, engine: Any) -> None:
        path = self.ext_args.get("load_path")
        if path:
            engine.load_checkpoint(path)


class SaveCkptHook(LearnerHook):
    """Save every `freq` iterations, or at the end of the run."""

    def __call__(self, engine: Any) -> None:
        due = self.position == "after_run" or engine.train_iter % self.ext_args.get("freq", 1) == 0
        if due and engine.rank == 0:
            engine.save_checkpoint()


class LogShowHook(LearnerHook):
    """Write the averages since the last time, to text and TensorBoard."""

    def due(self, engine: Any) -> bool:
        return engine.train_iter % self.ext_args.get("freq", 1) == 0

    def __call__(self, engine: Any) -> None:
        if not self.due(engine):
            return
        values = engine.log_buffer.averages()
        engine.log_buffer.clear()
        if not values or engine.rank != 0:
            return
        engine.log.info(f"training, train iter {engine.train_iter}\n{table(values)}")
        name = engine.instance_name
        by_iter = {f"{name}_iter/{key}_avg": value for key, value in values.items()}
        by_step = {f"{name}_step/{key}_avg": value for key, value in values.items()}
        engine.log.scalars(by_iter, engine.train_iter)
        if engine.collector_envstep >= 0:
            engine.log.scalars(by_step, engine.collector_envstep)


class LogReduceHook(LearnerHook):
    """With several learners: average what they log, just before it is written."""

    def __call__(self, engine: Any) -> None:
        learners = current()
        shows = [hook for hook in engine._hooks["after_iter"] if isinstance(hook, LogShowHook)]
        if learners is None or not any(hook.due(engine) for hook in shows):
            return
        values = engine.log_buffer.averages()
        means = torch.tensor(list(values.values()), dtype=torch.float64)
        learners.average_(means)
        engine.log_buffer.clear()
        engine.log_buffer.add(dict(zip(values, means.tolist(), strict=True)))


HOOK_TYPES: dict[str, type[LearnerHook]] = {
    "load_ckpt": LoadCkptHook,
    "save_ckpt": SaveCkptHook,
    "log_show": LogShowHook,
    "log_reduce": LogReduceHook,
}


def register_learner_hook(name: str, hook_type: type[LearnerHook]) -> None:
    """Make a hook class known to configs as `dict(type=name, ...)`."""
    if not issubclass(hook_type, LearnerHook):
        raise TypeError(f"{hook_type.__name__} is no LearnerHook")
    HOOK_TYPES[name] = hook_type


def build_learner_hook_by_cfg(cfg: Mapping[str, Any]) -> dict[str, list[LearnerHook]]:
    """Hooks by position, from short keys (`save_ckpt_after_iter=1000`) and full entries."""
    hooks: dict[str, list[LearnerHook]] = {position: [] for position in POSITIONS}
    for key, value in cfg.items():
        hook = _full(key, value) if isinstance(value, Mapping) else _short(key, value)
        if hook is not None:
            add_learner_hook(hooks, hook)
    return hooks


def _full(name: str, cfg: Mapping[str, Any]) -> LearnerHook:
    kind = cfg.get("type", name)
    if kind not in HOOK_TYPES:
        raise ConfigError(
            f"policy.learn.learner.hook.{name}: unknown type '{kind}'{nearest(kind, HOOK_TYPES)}"
        )
    return HOOK_TYPES[kind](
        cfg.get("name", name),
        cfg.get("priority", 100),
        position=cfg.get("position", "after_iter"),
        ext_args=cfg.get("ext_args", {}),
    )


def _short(key: str, value: Any) -> LearnerHook | None:
    if key == "load_ckpt_before_run":
        args = {"load_path": value}
        return LoadCkptHook(key, 20, "before_run", args) if value else None
    if key == "log_show_after_iter":
        return LogShowHook(key, 20, "after_iter", {"freq": _frequency(key, value)})
    if key == "save_ckpt_after_iter":
        return SaveCkptHook(key, 20, "after_iter", {"freq": _frequency(key, value)})
    if key == "save_ckpt_after_run":
        return SaveCkptHook(key, 20, "after_run") if value else None
    if key == "log_reduce_after_iter":
        return LogReduceHook(key, 10, "after_iter") if value else None
    valid = ["load_ckpt_before_run", "log_show_after_iter", "save_ckpt_after_iter"]
    valid += ["save_ckpt_after_run", "log_reduce_after_iter"]
    raise ConfigError(
        f"unknown config key 'policy.learn.learner.hook.{key}' (= {value!r}){nearest(key, valid)}"
    )


def _frequency(key: str, value: Any) -> int:
    if not isinstance(value, (int, float)) or int(value) != value or value < 1:
        raise ConfigError(
            f"policy.learn.learner.hook.{key} = {value!r}: must be a whole number >= 1"
        )
    return int(value)


def add_learner_hook(hooks: dict[str, list[LearnerHook]], hook: LearnerHook) -> None:
    hooks[hook.position].append(hook)
    hooks[hook.position].sort(key=lambda h: h.priority)


def merge_hooks(
    first: dict[str, list[LearnerHook]], second: dict[str, list[LearnerHook]]
) -> dict[str, list[LearnerHook]]:
    """Both sets by priority; of equals those of `first` run first."""
    return {p: sorted(first[p] + second[p], key=lambda h: h.priority) for p in POSITIONS}


def show_hooks(hooks: dict[str, list[LearnerHook]]) -> str:
    lines = [f"{p}: {', '.join(f'{h.name}({h.priority})' for h in hooks[p])}" for p in POSITIONS]
    return "\n".join(lines)
