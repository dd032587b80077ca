"""A replay buffer of demonstrations: filled from a file, saved without what the file holds."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ding.data.demonstrations import Demonstrations
from ding.utils.batch import Batch, Rows, columns_of, length, tree_map
from ding.utils.errors import CheckpointError, ConfigError
from ding.worker import create_buffer
from ding.worker.buffer import IBuffer

_CHANGING = ("priority", "use", "links", "links_back")
"""Arrays of a buffer's state that are not its samples."""


class ExpertBuffer(IBuffer):
    """Draws from demonstrations as a replay buffer of the same settings would."""

    def __init__(
        self,
        demonstrations: Demonstrations,
        buffer_cfg: Mapping[str, Any],
        more: Batch | None = None,
        at_least: int = 1,
        exp_name: str | None = None,
    ) -> None:
        """`more`: further columns; `at_least`: how many steps a draw may ask for."""
        steps = {**columns_of(demonstrations.steps()), **(more or {})}
        self._name, count = demonstrations.origin.name, length(steps)
        if count < at_least:
            raise ConfigError(
                f"'{self._name}' has {count} steps, fewer than policy.learn.batch_size = "
                f"{at_least}; record more episodes, or lower the batch size"
            )
        cfg = {**buffer_cfg, "replay_buffer_size": count}
        self._buffer: IBuffer = create_buffer(cfg, exp_name=exp_name, instance_name="expert_buffer")
        self._buffer.push(Rows(steps))
        self._checksum = _checksum(steps)

    def push(self, data: Any, cur_collector_envstep: int = 0) -> None:
        raise TypeError("demonstrations are fixed: the agent's steps go to its own buffer")

    def sample(
        self, batch_size: int, cur_learner_iter: int = 0, **options: Any
    ) -> Sequence[Any] | None:
        return self._buffer.sample(batch_size, cur_learner_iter, **options)

    def clear(self) -> None:
        raise TypeError("demonstrations are fixed: they are not cleared")

    def update(self, info: Mapping[str, Any]) -> None:
        self._buffer.update(info)

    def count(self) -> int:
        return self._buffer.count()

    def state_dict(self) -> dict[str, Any]:
        """All but the steps themselves."""
        state = self._buffer.state_dict()
        kept = {k: v for k, v in state["arrays"].items() if k in _CHANGING}
        return {"checksum": self._checksum, "buffer": {**state, "arrays": kept}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["checksum"] != self._checksum:
            raise CheckpointError(
                f"'{self._name}' does not hold the demonstrations that this run was begun with"
            )
        arrays = {**self._buffer.state_dict()["arrays"], **state["buffer"]["arrays"]}
        self._buffer.load_state_dict({**state["buffer"], "arrays": arrays})

    def close(self) -> None:
        self._buffer.close()


def _checksum(steps: Batch) -> int:
    total = 0

    def add(leaf: Any) -> None:
        nonlocal total
        total = zlib.crc32(np.ascontiguousarray(leaf).tobytes(), total)

    tree_map(add, steps)
    return total
