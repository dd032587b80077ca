"""Where samples are kept."""

from ding.worker.buffer.base import IBuffer, create_buffer, get_buffer_cls
from ding.worker.buffer.naive import NaiveReplayBuffer

__all__ = ["IBuffer", "NaiveReplayBuffer", "create_buffer", "get_buffer_cls"]
