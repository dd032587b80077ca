"""Entries: from a config to a trained policy."""

from ding.entry.evaluate import collect_demo_data, eval, evaluate, load_demo_data
from ding.entry.run import Run
from ding.entry.serial import serial_pipeline, serial_pipeline_onpolicy, train

__all__ = [
    "Run",
    "collect_demo_data",
    "eval",
    "evaluate",
    "load_demo_data",
    "serial_pipeline",
    "serial_pipeline_onpolicy",
    "train",
]
