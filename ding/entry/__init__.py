"""Entries: from a config to a trained policy."""

from ding.entry.evaluate import collect_demo_data, eval, evaluate, load_demo_data
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
    "eval",
    "evaluate",
    "load_demo_data",
    "parallel_pipeline",
    "serial_pipeline",
    "serial_pipeline_onpolicy",
    "serial_pipeline_reward_model_offpolicy",
    "serial_pipeline_reward_model_onpolicy",
    "train",
]
