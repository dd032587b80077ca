"""What a buffer can be taught with `buffer.use(...)`."""

from ding.data.buffer.middleware.checks import clone_object, staleness_check, use_time_check
from ding.data.buffer.middleware.groups import group_sample, padding, sample_range_view
from ding.data.buffer.middleware.priority import PriorityExperienceReplay

__all__ = [
    "PriorityExperienceReplay",
    "clone_object",
    "group_sample",
    "padding",
    "sample_range_view",
    "staleness_check",
    "use_time_check",
]
