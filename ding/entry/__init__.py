"""Entries: from a config to a trained policy."""

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
from ding.entry.evaluate import eval, evaluate
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
