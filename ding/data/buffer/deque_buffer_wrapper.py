"""The `deque` replay buffer of configs: uniform or prioritised by its own settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ding.utils.errors import ConfigError
from ding.worker.buffer import AdvancedReplayBuffer, IBuffer, NaiveReplayBuffer

INF = float("inf")


class DequeBufferWrapper(IBuffer):
    """`NaiveReplayBuffer` or, with priority or max_use, `AdvancedReplayBuffer` under other keys."""

    config: ClassVar[dict[str, Any]] = dict(
        type="deque",
        import_names=[],
        # Samples that are kept.
        replay_buffer_size=10000,
        # A sample is removed once it was used so many times.
        max_use=float("inf"),
        # Draws between two lines in the log about what is drawn.
        train_iter_per_log=100,
        # Draw by priority.
        priority=False,
        # Hand out importance weights that correct the bias of that.
        priority_IS_weight=False,
        # How much priorities count.
        priority_power_factor=0.6,
        # How much of the bias is corrected, at first ...
        IS_weight_power_factor=0.4,
        # ... growing to all of it over so many draws.
        IS_weight_anneal_train_iter=int(1e5),
        # Priorities above this are cut to it.
        priority_max_limit=1000,
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "buffer",
    ) -> None:
        self.cfg = self._with_defaults(cfg)
        if self.cfg.priority_IS_weight and not self.cfg.priority:
            raise ConfigError("priority_IS_weight = True takes effect with priority = True only")
        where = (tb_logger, exp_name, instance_name)
        size = self.cfg.replay_buffer_size
        self.buffer: NaiveReplayBuffer | AdvancedReplayBuffer
        if self.cfg.priority or self.cfg.max_use < INF:
            self.buffer = AdvancedReplayBuffer(self._advanced(size), *where)
        else:
            self.buffer = NaiveReplayBuffer(dict(replay_buffer_size=size), *where)

    def _advanced(self, size: int) -> dict[str, Any]:
        cfg = self.cfg
        watched = dict(average_range=5, print_freq=cfg.train_iter_per_log)
        return dict(
            replay_buffer_size=size,
            max_use=cfg.max_use,
            alpha=cfg.priority_power_factor if cfg.priority else 0.0,
            beta=cfg.IS_weight_power_factor if cfg.priority_IS_weight else 0.0,
            anneal_step=cfg.IS_weight_anneal_train_iter if cfg.priority_IS_weight else 0,
            monitor=dict(sampled_data_attr=watched),
        )

    def push(self, data: Any, cur_collector_envstep: int = 0) -> None:
        self.buffer.push(data, cur_collector_envstep)

    def sample(self, batch_size: int, cur_learner_iter: int = 0) -> Sequence[Any] | None:
        return self.buffer.sample(batch_size, cur_learner_iter)

    def update(self, info: Mapping[str, Any]) -> None:
        if not self.cfg.priority:
            return
        limit = float(self.cfg.priority_max_limit)
        priority = np.minimum(np.abs(np.asarray(info["priority"], dtype=float)), limit)
        self.buffer.update({**info, "priority": priority})

    def clear(self) -> None:
        self.buffer.clear()

    def count(self) -> int:
        return self.buffer.count()

    def state_dict(self) -> dict[str, Any]:
        return self.buffer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.buffer.load_state_dict(state)

    def save_data(self, file_name: str | Path) -> None:
        self.buffer.save_data(file_name)

    def load_data(self, file_name: str | Path) -> None:
        self.buffer.load_data(file_name)

    def close(self) -> None:
        self.buffer.close()
