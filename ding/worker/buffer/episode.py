"""Whole episodes as elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ding.utils.batch import Batch, Rows, columns_of, objects, tree_map
from ding.utils.errors import ConfigError
from ding.worker.buffer.naive import NaiveReplayBuffer
from ding.worker.buffer.relabelling import Drawn, Relabel, relabelled
from ding.worker.buffer.ring import ITEM


class EpisodeReplayBuffer(NaiveReplayBuffer):
    """Uniform over episodes, each a list of steps of its own length."""

    config: ClassVar[dict[str, Any]] = dict(type="episode", replay_buffer_size=1000)

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "buffer",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name)
        for name, default in (("storage", "ram"), ("nstep", 1), ("frame_stack", None)):
            if self._cfg[name] != default:
                raise ConfigError(
                    f"{name} = {self._cfg[name]} has no effect in a buffer of episodes"
                )

    @property
    def episode_len(self) -> list[int]:
        """Steps of each stored episode, the oldest first."""
        return [len(_steps(episode)) for episode in self._stored()]

    def _stored(self) -> list[Any]:
        if self._store is None:
            return []
        column = self._store.view(ITEM)
        return [] if column is None else list(column[self._valid_slots()])

    def _columns(self, data: Any) -> Batch:
        """One episode (a list of dicts, or `Rows`) or a list of episodes."""
        if not len(data):
            return {}
        is_one = isinstance(data, Rows) or isinstance(data[0], dict)
        episodes = [data] if is_one else data
        return {ITEM: objects([_kept(episode) for episode in episodes if len(episode)])}

    def push(self, data: Any, cur_collector_envstep: int = 0) -> None:
        # `Rows` are one episode here, not many samples.
        super().push([data] if isinstance(data, Rows) else data, cur_collector_envstep)

    def _read(
        self, slots: np.ndarray, extra: Batch | None = None, relabel: Relabel | None = None
    ) -> Sequence[Any]:
        episodes = [_steps(episode) for episode in super()._read(slots, extra)]
        if relabel is None:
            return episodes
        return [Rows(relabelled(relabel, self._drawn_episode(e))) for e in episodes]

    def _drawn_episode(self, episode: Rows) -> Drawn:
        exist = np.ones((1, len(episode)), bool)
        return Drawn(episode.columns, exist, self._rng, self.name)


def _kept(episode: Any) -> Any:
    """The columns of an episode in memory of their own."""
    return tree_map(np.array, columns_of(episode))


def _steps(columns: Any) -> Rows:
    return Rows(tree_map(np.copy, columns))
