"""Prioritised experience replay with limits on use, age and flow of data.

Schaul et al. 2016, https://arxiv.org/abs/1511.05952
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ding.policy.replay_columns import BOOKKEEPING
from ding.utils.batch import Batch, Rows
from ding.utils.errors import ConfigError, DingError
from ding.worker.buffer.flow import SampledMonitor, ThruputController
from ding.worker.buffer.relabelling import Relabel
from ding.worker.buffer.ring import RingBuffer

if TYPE_CHECKING:
    from ding.worker.buffer.priority import PriorityDraw

logger = logging.getLogger(__name__)

INF = float("inf")
_SCAN = 4096


class AdvancedReplayBuffer(RingBuffer):
    """Samples in proportion to priority ** alpha, stratified, with importance weights."""

    config: ClassVar[dict[str, Any]] = dict(
        type="advanced",
        replay_buffer_size=4096,
        # A sample is removed once it was used so many times.
        max_use=float("inf"),
        # A sample is removed when it is so many updates old.
        max_staleness=float("inf"),
        # How much priorities count: 0 is uniform, 1 proportional.
        alpha=0.6,
        # How much of the bias importance weights correct, at first ...
        beta=0.4,
        # ... growing to 1 over so many draws; 0: it stays.
        anneal_step=100000,
        thruput_controller=dict(
            # Limits on samples pushed per sample drawn; what is beyond is refused.
            push_sample_rate_limit=dict(max=float("inf"), min=0.0),
            # Counts fade, so that 1 % is left after so long.
            window_seconds=30,
            # No draw while there are fewer than so many times the batch.
            sample_min_limit_ratio=1,
        ),
        monitor=dict(
            # Means over so many batches, once in so many.
            sampled_data_attr=dict(average_range=5, print_freq=200),
            # Seconds between two lines about the flow of data.
            periodic_thruput=dict(seconds=60),
        ),
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "buffer",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name)
        self._check()
        self._alpha, self._beta = float(self._cfg.alpha), float(self._cfg.beta)
        self._max_use, self._max_staleness = self._cfg.max_use, self._cfg.max_staleness
        self._removed |= {"max_use": 0, "max_staleness": 0}
        self._refused = {"push": 0, "sample": 0, "not_a_dict": 0}
        self._limits = ThruputController(self._cfg.thruput_controller)
        self._monitor = SampledMonitor(self._cfg.monitor.sampled_data_attr)
        self._n_draw = 0
        self._max_priority = 1.0
        self._make_tree()

    def _check(self) -> None:
        cfg = self._cfg
        for name in ("alpha", "beta"):
            if not 0 <= cfg[name] <= 1:
                raise ConfigError(f"{name} = {cfg[name]}: must be between 0 and 1")
        for name in ("max_use", "max_staleness"):
            if not cfg[name] >= 1:
                raise ConfigError(f"{name} = {cfg[name]}: must be at least 1")
        if cfg.anneal_step < 0:
            raise ConfigError(f"anneal_step = {cfg.anneal_step}: must not be negative")

    def _make_tree(self) -> None:
        from ding.worker.buffer.priority import PriorityTree

        self._tree = PriorityTree(self._size, self._alpha)
        self._valid = 0
        self._newest_iter, self._in_order = -INF, True

    def count(self) -> int:
        return self._valid

    def accounts(self) -> dict[str, Any]:
        return {**super().accounts(), "refused": dict(self._refused)}

    @property
    def beta(self) -> float:
        """Of the next draw."""
        steps = self._cfg.anneal_step
        grown = min(1.0, self._n_draw / steps) if steps else 0.0
        return self._beta + (1 - self._beta) * grown

    # --- in ------------------------------------------------------------------------------------

    def _columns(self, data: Any) -> Batch:
        rows = data if isinstance(data, list) else [data]
        kept = rows if isinstance(rows, Rows) else [row for row in rows if isinstance(row, dict)]
        if len(kept) < len(rows):
            self._refused["not_a_dict"] += len(rows) - len(kept)
            self._log.info(f"{len(rows) - len(kept)} pushed samples are no dicts: dropped")
        return super()._columns(kept)

    def _accept(self, columns: Batch, n: int) -> int:
        if not self._limits.may_push(n):
            self._refused["push"] += n
            return -1
        given = columns.get("priority")
        if "replay_unique_id" in columns or given is not None:
            columns = {k: v for k, v in columns.items() if k not in BOOKKEEPING}
        start = super()._accept(columns, n)
        self._limits.pushed(n)
        self._valid += n
        self._place(start, n, given)
        if self._max_staleness < INF and "collect_iter" in columns:
            iters = np.asarray(columns["collect_iter"])
            rising = n == 1 or bool((iters[1:] >= iters[:-1]).all())
            self._in_order &= rising and bool(iters[0] >= self._newest_iter)
            self._newest_iter = max(self._newest_iter, float(iters.max()))
        return start

    def _place(self, start: int, n: int, given: Any) -> None:
        """Priorities of new samples: those that came with them, else the largest so far."""
        stop = min(start + n, self._size)
        lost = self._tree.place(start, stop, self._max_priority)
        if stop < start + n:
            lost += self._tree.place(0, start + n - stop, self._max_priority)
        self._removed["overwritten"] += lost
        self._valid -= lost
        if given is not None:
            known = [i for i, one in enumerate(given) if one is not None]
            slots = (start + np.asarray(known, dtype=np.int64)) % self._size
            values = np.array([abs(float(given[i])) + 1e-5 for i in known])
            self._set_priority(slots, values)

    def _count_overwritten(self, n: int) -> None:
        """Counted where they are replaced: some had been removed before."""

    # --- out -----------------------------------------------------------------------------------

    def sample(
        self,
        batch_size: int,
        cur_learner_iter: int = 0,
        sample_range: slice | None = None,
        relabel: Relabel | None = None,
    ) -> Sequence[Any] | None:
        """Samples by priority (one may come twice), or None if there are too few or too soon.

        `sample_range` restricts the draw to a slice of the samples in order of age. `relabel` sees
        single steps, before rewards are summed.
        """
        if batch_size == 0:
            return []
        if self._max_staleness < INF:
            self._remove_stale(cur_learner_iter)
        if not self._limits.may_sample(batch_size, self._valid):
            self._refused["sample"] += batch_size
            return None
        drawn = self._drawn(batch_size, sample_range)
        if drawn is None:
            return None
        slots, unique_id, priority, use, weight = drawn
        extra = {
            "replay_unique_id": unique_id,
            "replay_buffer_idx": slots,
            "priority": priority,
            "use": use,
            "IS": weight,
        }
        rows = self._read(slots, extra, relabel)
        extra["staleness"] = rows.columns["staleness"] = self._staleness(rows, cur_learner_iter)
        self._n_draw += 1
        self._sampled += batch_size
        self._limits.sampled(batch_size)
        if self._max_use < INF:
            self._remove(np.unique(slots[use >= self._max_use]), "max_use")
        self._log_if_due()
        self._watch(extra, cur_learner_iter)
        return rows

    def _drawn(self, n: int, sample_range: slice | None) -> PriorityDraw | None:
        snapshot = self._active_snapshot()
        if snapshot is None:
            return self._draw(n, sample_range)
        with snapshot.lock:
            drawn = self._draw(n, sample_range)
            if drawn is not None:
                changed, times = np.unique(drawn.slot, return_counts=True)
                snapshot.note("use", changed, self._tree.use[changed] - times)
        return drawn

    def _draw(self, n: int, sample_range: slice | None) -> PriorityDraw | None:
        uniform, newest = self._rng.random(n), self._serial - 1
        if sample_range is None:
            return self._tree.draw(uniform, self._max_use, self.beta, newest)
        within = self._valid_slots()[sample_range]
        if len(within) < n:
            return None
        return self._draw_within(within, uniform)

    def _draw_within(self, within: np.ndarray, uniform: np.ndarray) -> PriorityDraw:
        tree, n = self._tree, len(uniform)
        sums = np.cumsum(tree.leaves[within])
        wanted = (np.arange(n) + uniform) / n * sums[-1]
        slots = within[np.minimum(np.searchsorted(sums, wanted, side="right"), len(within) - 1)]
        np.add.at(tree.use, slots, 1)
        weight = (tree.leaves[slots] / tree.smallest) ** -self.beta
        use, priority = tree.use[slots].astype(np.int32), tree.priority[slots]
        from ding.worker.buffer.priority import PriorityDraw

        return PriorityDraw(slots, self._serials(slots), priority, use, weight.astype(np.float32))

    def _staleness(self, rows: Any, learner_iter: int) -> np.ndarray:
        collected = rows.columns.get("collect_iter")
        return np.full(len(rows), -1) if collected is None else learner_iter - collected

    def _remove_stale(self, learner_iter: int) -> None:
        collected = None if self._store is None else self._store.view("collect_iter")
        if collected is None:
            return
        n, at = self._serial - self._oldest, 0
        # In order of age the stale ones come first.
        step = _SCAN if self._in_order else max(n, 1)
        while at < n:
            slots = self._slots(np.arange(at, min(n, at + step)))
            stale = learner_iter - collected[slots] >= self._max_staleness
            self._remove(self._still_valid(slots[stale]), "max_staleness")
            if not stale.all():
                return
            at += step

    def _remove(self, slots: np.ndarray, reason: str) -> None:
        if not len(slots):
            return
        snapshot = self._active_snapshot()
        if snapshot is not None:
            snapshot.before_change(slots, "priority")
        self._drop_files(slots)
        self._tree.remove(slots)
        self._valid -= len(slots)
        self._removed[reason] += len(slots)

    # --- priorities ----------------------------------------------------------------------------

    def update(self, info: Mapping[str, Any]) -> None:
        """New priorities for samples by `replay_unique_id`; those that are gone are skipped."""
        ids, priority = _array(info["replay_unique_id"], np.int64), _array(info["priority"], float)
        if len(ids) != len(priority):
            raise DingError(f"update got {len(priority)} priorities for {len(ids)} samples")
        slots, priority, finite = self._tree.find(ids, priority, self._oldest, self._serial)
        if not finite:
            raise DingError(
                "update got priorities that are NaN or infinite; is the training diverging?"
            )
        if len(slots):
            self._set_priority(slots, priority)

    def _set_priority(self, slots: np.ndarray, priority: np.ndarray) -> None:
        snapshot = self._active_snapshot()
        if snapshot is not None:
            snapshot.before_change(slots, "priority")
        self._max_priority = max(self._max_priority, self._tree.set(slots, priority))

    # --- log and state -------------------------------------------------------------------------

    def _flow_seconds(self) -> float:
        return self._cfg.monitor.periodic_thruput.seconds

    def _watch(self, extra: Batch, learner_iter: int) -> None:
        means = self._monitor.add(extra)
        if means is not None:
            text = ", ".join(f"{name} {value:.4g}" for name, value in means.items())
            self._log.info(f"sampled at update {learner_iter}: {text}, beta {self.beta:.3f}")
            self._scalars(means | {"beta": self.beta}, self._envstep)

    def _reset(self) -> None:
        super()._reset()
        self._make_tree()

    def _still_valid(self, slots: np.ndarray) -> np.ndarray:
        return slots[self._tree.priority[slots] > 0]

    def _meta(self) -> dict[str, Any]:
        return super()._meta() | {
            "n_draw": self._n_draw,
            "max_priority": self._max_priority,
            "limits": self._limits.state_dict(),
            "refused": dict(self._refused),
            "iters": [self._newest_iter, self._in_order],
        }

    def _slot_arrays(self) -> dict[str, np.ndarray]:
        arrays = super()._slot_arrays()
        n = len(next(iter(arrays.values()))) if arrays else 0
        return arrays | {"priority": self._tree.priority[:n], "use": self._tree.use[:n]}

    def _restore(self, state: dict[str, Any]) -> None:
        n = state["serial"] - state["oldest"]
        source = (state["oldest"] + np.arange(n)) % state["size"]
        super()._restore(state)
        self._make_tree()
        to, arrays = self._slots(np.arange(n)), state["arrays"]
        priority = arrays["priority"][source] if n else np.zeros(0)
        self._tree.use[to] = arrays["use"][source] if n else 0
        there = priority > 0
        self._tree.set(to[there], priority[there])
        self._valid = int(np.count_nonzero(there))
        self._n_draw, self._max_priority = state["n_draw"], state["max_priority"]
        self._refused |= state["refused"]
        self._limits.load_state_dict(state["limits"])
        self._newest_iter, self._in_order = state["iters"]


def _array(values: Any, dtype: Any) -> np.ndarray:
    """A column, tensor or list of numbers or one-number tensors as a flat array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if isinstance(values, (list, tuple)):
        values = [float(v) if dtype is float else int(v) for v in values]
    return np.asarray(values, dtype=dtype).reshape(-1)
