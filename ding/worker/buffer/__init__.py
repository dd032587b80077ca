"""Where samples are kept."""

from ding.worker.buffer.advanced import AdvancedReplayBuffer
from ding.worker.buffer.base import IBuffer, create_buffer, get_buffer_cls
from ding.worker.buffer.elastic import ElasticReplayBuffer
from ding.worker.buffer.episode import EpisodeReplayBuffer
from ding.worker.buffer.naive import NaiveReplayBuffer
from ding.worker.buffer.sequence import AdvancedSequenceReplayBuffer, SequenceReplayBuffer

__all__ = [
    "AdvancedReplayBuffer",
    "AdvancedSequenceReplayBuffer",
    "ElasticReplayBuffer",
    "EpisodeReplayBuffer",
    "IBuffer",
    "NaiveReplayBuffer",
    "SequenceReplayBuffer",
    "create_buffer",
    "get_buffer_cls",
]
