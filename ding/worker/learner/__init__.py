"""The learner and its hooks."""

from ding.worker.learner.base import BaseLearner, LogBuffer, TrainingDivergedError, create_learner
from ding.worker.learner.hooks import (
    Hook,
    LearnerHook,
    LoadCkptHook,
    LogReduceHook,
    LogShowHook,
    SaveCkptHook,
    add_learner_hook,
    build_learner_hook_by_cfg,
    merge_hooks,
    register_learner_hook,
    show_hooks,
)

__all__ = [
    "BaseLearner",
    "Hook",
    "LearnerHook",
    "LoadCkptHook",
    "LogBuffer",
    "LogReduceHook",
    "LogShowHook",
    "SaveCkptHook",
    "TrainingDivergedError",
    "add_learner_hook",
    "build_learner_hook_by_cfg",
    "create_learner",
    "merge_hooks",
    "register_learner_hook",
    "show_hooks",
]
