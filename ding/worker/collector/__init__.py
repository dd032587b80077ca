"""Collectors: from env and policy to samples or episodes."""

from ding.worker.collector.base import (
    ISerialCollector,
    create_serial_collector,
    get_serial_collector_cls,
)
from ding.worker.collector.episode import EpisodeCollector
from ding.worker.collector.players import PlayersCollector
from ding.worker.collector.sample import SampleCollector

SampleSerialCollector = SampleCollector
EpisodeSerialCollector = EpisodeCollector

__all__ = [
    "EpisodeCollector",
    "EpisodeSerialCollector",
    "ISerialCollector",
    "PlayersCollector",
    "SampleCollector",
    "SampleSerialCollector",
    "create_serial_collector",
    "get_serial_collector_cls",
]
