"""A ring of columns with uniform sampling."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ding.utils.batch import Batch, Rows, columns_of, gather, length, objects, take, tree_map
from ding.utils.errors import ConfigError
from ding.utils.log import WorkerLog
from ding.utils.seed import new_generator
from ding.worker.buffer.base import IBuffer

_ITEM = "__item__"


class NaiveReplayBuffer(IBuffer):
    """First in, first out; every stored sample is as likely as any other."""

    supports_priority: ClassVar[bool] = False

    config: ClassVar[dict[str, Any]] = dict(
        type="naive",
        import_names=[],
        # Samples that are kept.
        replay_buffer_size=10000,
        # Accepted for older configs: what is pushed is always copied into the columns.
        deepcopy=False,
        # Accepted for older configs: nothing outside of the buffer belongs to a sample.
        enable_track_used_data=False,
        # Seconds between two lines about the flow of data in the log.
        periodic_thruput_seconds=60,
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str = "default_experiment",
        instance_name: str = "buffer",
    ) -> None:
        self._cfg = self._with_defaults(cfg)
        self._size = int(self._cfg.replay_buffer_size)
        if self._size < 1:
            raise ConfigError(f"replay_buffer_size = {self._size}: must be at least 1")
        self._rng = new_generator()
        self._log = WorkerLog(exp_name, instance_name, tb_logger)
        self._instance_name = instance_name
        self._flow = {"pushed": 0, "sampled": 0}
        self._flow_time = time.monotonic()
        self._envstep = 0
        self.clear()

    def clear(self) -> None:
        self._columns: Batch | None = None
        self._tail = self._count = 0

    def count(self) -> int:
        return self._count

    def push(self, data: Any, cur_collector_envstep: int = 0) -> None:
        """Store one sample (a dict, or any object) or a list of them."""
        self._envstep = cur_collector_envstep
        rows = data if isinstance(data, list) else [data]
        if not rows:
            return
        columns = _columns(rows)
        n = length(columns)
        if n > self._size:
            columns, n = take(columns, slice(n - self._size, n)), self._size
        if self._columns is None:
            self._columns = tree_map(self._allocate, columns)
        first = min(n, self._size - self._tail)
        _write(self._columns, columns, slice(self._tail, self._tail + first), slice(0, first))
        if first < n:
            _write(self._columns, columns, slice(0, n - first), slice(first, n))
        self._tail = (self._tail + n) % self._size
        self._count = min(self._count + n, self._size)
        self._note("pushed", n)

    def _allocate(self, column: np.ndarray) -> np.ndarray:
        return np.empty((self._size, *column.shape[1:]), dtype=column.dtype)

    def sample(
        self,
        batch_size: int,
        cur_learner_iter: int = 0,
        sample_range: slice | None = None,
        replace: bool = False,
    ) -> Sequence[Any] | None:
        """Samples drawn uniformly, or None while there are fewer than that.

        `sample_range` restricts the draw to a slice of the samples in order of age.
        """
        if batch_size == 0:
            return []
        ages = range(self._count)[sample_range] if sample_range is not None else None
        n = self._count if ages is None else len(ages)
        if n == 0 or (n < batch_size and not replace):
            return None
        index = self._draw(n, batch_size, replace)
        if ages is not None:
            index = (np.asarray(ages)[index] + self._tail - self._count) % self._size
        self._note("sampled", batch_size)
        assert self._columns is not None
        columns = gather(self._columns, index)
        return list(columns[_ITEM]) if _ITEM in columns else Rows(columns)

    def _draw(self, n: int, size: int, replace: bool) -> np.ndarray:
        index = self._rng.integers(0, n, size)
        if replace or len(distinct := dict.fromkeys(index.tolist())) == size:
            return index
        # Drawing on until enough are distinct is far cheaper than permuting the whole buffer.
        while len(distinct) < size and size < 0.5 * n:
            distinct |= dict.fromkeys(self._rng.integers(0, n, size).tolist())
        if len(distinct) < size:
            return self._rng.choice(n, size, replace=False)
        return np.fromiter(distinct, dtype=np.int64, count=size)

    def update(self, info: Mapping[str, Any]) -> None:
        """Uniform sampling has no priorities to update."""

    def _note(self, what: str, n: int) -> None:
        self._flow[what] += n
        if time.monotonic() - self._flow_time >= self._cfg.periodic_thruput_seconds:
            self._log_flow()

    def _log_flow(self) -> None:
        """How much was pushed and sampled since the last time, to text and TensorBoard."""
        seconds = max(time.monotonic() - self._flow_time, 1e-9)
        rates = ", ".join(f"{name} {n} ({n / seconds:.0f}/s)" for name, n in self._flow.items())
        self._log.info(f"in {seconds:.0f} s: {rates}; {self._count} stored")
        values = {**self._flow, "stored": self._count}
        name = self._instance_name
        self._log.scalars({f"{name}_step/{k}": v for k, v in values.items()}, self._envstep)
        self._flow = dict.fromkeys(self._flow, 0)
        self._flow_time = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        columns = None if self._columns is None else take(self._columns, slice(0, self._count))
        return {
            "columns": columns,
            "size": self._size,
            "tail": self._tail,
            "count": self._count,
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.clear()
        if state["count"] > self._size:
            raise ConfigError(
                f"{state['count']} stored samples do not fit into replay_buffer_size = {self._size}"
            )
        columns, tail = state["columns"], state["tail"]
        if state["size"] != self._size and state["count"] == state["size"]:
            # A full ring of another size: unroll it, the oldest first.
            columns, tail = tree_map(lambda c: np.roll(c, -tail, axis=0), columns), state["count"]
        if columns is not None:
            self._columns = tree_map(self._allocate, columns)
            stored = slice(0, state["count"])
            _write(self._columns, columns, stored, stored)
        self._count = state["count"]
        self._tail = tail % self._size
        self._rng.bit_generator.state = state["rng"]

    def close(self) -> None:
        if any(self._flow.values()) and self._envstep:
            self._log_flow()
        self._log.close()


def _columns(rows: list[Any]) -> Batch:
    if isinstance(rows, Rows) or isinstance(rows[0], dict):
        return columns_of(rows)
    return {_ITEM: objects(rows)}


def _write(ring: Any, columns: Any, to: slice, source: slice, path: str = "") -> None:
    """Copy rows into the ring, column by column."""
    if isinstance(ring, dict):
        if not isinstance(columns, dict) or ring.keys() != columns.keys():
            got = sorted(columns) if isinstance(columns, dict) else type(columns).__name__
            raise ValueError(
                f"pushed samples have {got}{path}, but the buffer holds {sorted(ring)}"
            )
        for key in ring:
            _write(ring[key], columns[key], to, source, f"{path}['{key}']")
    elif isinstance(ring, tuple):
        for i, (mine, theirs) in enumerate(zip(ring, columns, strict=True)):
            _write(mine, theirs, to, source, f"{path}[{i}]")
    elif ring.shape[1:] != columns.shape[1:]:
        raise ValueError(
            f"pushed samples{path} have shape {columns.shape[1:]}, but the buffer holds "
            f"{ring.shape[1:]}"
        )
    else:
        ring[to] = columns[source]
