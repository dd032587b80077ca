"""A ring of which only the newest part is drawn from, a part that changes while training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ding.utils.errors import ConfigError
from ding.worker.buffer.naive import NaiveReplayBuffer

Size = int | Mapping[str, Any] | Callable[[int], float]


class ElasticReplayBuffer(NaiveReplayBuffer):
    """As `naive`, with a size by env step: small while the policy changes quickly, then larger."""

    config: ClassVar[dict[str, Any]] = dict(
        type="elastic",
        # The newest samples to draw from: a number, dict(start=, end=, decay=) for a straight line
        # over `decay` env steps, or a function of the env step; None: all that are kept.
        set_buffer_size=None,
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "buffer",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name)
        self._size_at = _size_function(self._cfg.set_buffer_size, self._size)
        _ = self.current_size  # A setting that makes no sense is told now.

    @property
    def current_size(self) -> int:
        """How many of the newest samples are drawn from at this env step."""
        size = int(self._size_at(self._envstep))
        if not 1 <= size <= self._size:
            raise ConfigError(
                f"set_buffer_size gives {size} at env step {self._envstep}: it must be from 1 to "
                f"replay_buffer_size = {self._size}"
            )
        return size

    def _drawn_slots(
        self, batch_size: int, sample_range: slice | None, replace: bool
    ) -> np.ndarray | None:
        if sample_range is None:
            sample_range = slice(max(0, self.count() - self.current_size), None)
        return super()._drawn_slots(batch_size, sample_range, replace)

    def _meta(self) -> dict[str, Any]:
        return super()._meta() | {"envstep": self._envstep}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._envstep = state["envstep"]


def _size_function(setting: Size | None, size: int) -> Callable[[int], float]:
    if setting is None:
        return lambda envstep: size
    if isinstance(setting, int):
        return lambda envstep: setting
    if isinstance(setting, Mapping):
        unknown = set(setting) ^ {"start", "end", "decay"}
        if unknown or setting["decay"] <= 0:
            raise ConfigError(
                f"set_buffer_size = {dict(setting)}: give start, end and a positive decay"
            )
        start, end, decay = setting["start"], setting["end"], setting["decay"]
        return lambda envstep: start + (end - start) * min(envstep / decay, 1.0)
    if callable(setting):
        return setting
    raise ConfigError(f"set_buffer_size = {setting!r}: a number, a dict or a function is wanted")
