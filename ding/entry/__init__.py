"""Entries: from a config to a trained policy.

Names are imported on use, since the command is in this package and answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ding.entry.bc import serial_pipeline_bc
    from ding.entry.dagger import serial_pipeline_dagger
    from ding.entry.demo import record
    from ding.entry.demo_data import (
        collect_demo_data,
        collect_episodic_demo_data,
        episode_to_transitions,
        episode_to_transitions_filter,
        offline_data_save_type,
    )
    from ding.entry.evaluation import eval, evaluate
    from ding.entry.expert import (
        serial_pipeline_dqfd,
        serial_pipeline_gail,
        serial_pipeline_r2d3,
        serial_pipeline_sqil,
    )
    from ding.entry.parallel import parallel_pipeline
    from ding.entry.reward_model import (
        serial_pipeline_reward_model_offpolicy,
        serial_pipeline_reward_model_onpolicy,
    )
    from ding.entry.serial import serial_pipeline, serial_pipeline_onpolicy, train
    from ding.pipeline.run import Run

_MODULES = {
    "Run": "ding.pipeline.run",
    "collect_demo_data": "ding.entry.demo_data",
    "collect_episodic_demo_data": "ding.entry.demo_data",
    "episode_to_transitions": "ding.entry.demo_data",
    "episode_to_transitions_filter": "ding.entry.demo_data",
    "eval": "ding.entry.evaluation",
    "evaluate": "ding.entry.evaluation",
    "offline_data_save_type": "ding.entry.demo_data",
    "parallel_pipeline": "ding.entry.parallel",
    "record": "ding.entry.demo",
    "serial_pipeline": "ding.entry.serial",
    "serial_pipeline_bc": "ding.entry.bc",
    "serial_pipeline_dagger": "ding.entry.dagger",
    "serial_pipeline_dqfd": "ding.entry.expert",
    "serial_pipeline_gail": "ding.entry.expert",
    "serial_pipeline_onpolicy": "ding.entry.serial",
    "serial_pipeline_r2d3": "ding.entry.expert",
    "serial_pipeline_reward_model_offpolicy": "ding.entry.reward_model",
    "serial_pipeline_reward_model_onpolicy": "ding.entry.reward_model",
    "serial_pipeline_sqil": "ding.entry.expert",
    "train": "ding.entry.serial",
}
"""Public name to the module that it is in; no module of this package may be called like one."""

__all__ = [
    "Run",
    "collect_demo_data",
    "collect_episodic_demo_data",
    "episode_to_transitions",
    "episode_to_transitions_filter",
    "eval",
    "evaluate",
    "offline_data_save_type",
    "parallel_pipeline",
    "record",
    "serial_pipeline",
    "serial_pipeline_bc",
    "serial_pipeline_dagger",
    "serial_pipeline_dqfd",
    "serial_pipeline_gail",
    "serial_pipeline_onpolicy",
    "serial_pipeline_r2d3",
    "serial_pipeline_reward_model_offpolicy",
    "serial_pipeline_reward_model_onpolicy",
    "serial_pipeline_sqil",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'ding.entry' has no attribute '{name}'")
    return getattr(import_module(_MODULES[name]), name)
