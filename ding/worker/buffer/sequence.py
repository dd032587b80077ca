"""Sequences of successive steps for recurrent policies, drawn from single steps.

Kapturowski et al. 2019, https://openreview.net/forum?id=r1lyTjAqYX
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ding.utils.batch import Batch, Rows, tree_map
from ding.utils.errors import ConfigError
from ding.worker.buffer.advanced import AdvancedReplayBuffer
from ding.worker.buffer.links import Links
from ding.worker.buffer.naive import NaiveReplayBuffer, draw
from ding.worker.buffer.nstep import with_discount
from ding.worker.buffer.relabelling import Drawn, Relabel, relabelled


class SequenceReplayBuffer(NaiveReplayBuffer):
    """Rows of a batch are sequences (T, ...) that never cross the end of an episode.

    T is burn_in + unroll_len. `mask` is 1 for steps that exist, `burn_in` for how many the network
    only warms up; `prev_state`, if steps have it, is that of the first step alone.
    """

    config: ClassVar[dict[str, Any]] = dict(
        type="sequence",
        # Steps to learn from in each sequence.
        unroll_len=20,
        # Steps before them that only bring the hidden state up to date.
        burn_in=0,
        # Sequences that an episode's end cuts short are filled up with its last step, masked; if
        # False, only whole ones are drawn.
        padding=True,
        # Columns of which only the first step's value is handed out.
        state_keys=["prev_state"],
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "buffer",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name)
        _check_lengths(self._cfg)

    def _new_links(self) -> Links:
        return Links(self._size, both_ways=self._cfg.links)

    def sample(
        self,
        batch_size: int,
        cur_learner_iter: int = 0,
        sample_range: slice | None = None,
        replace: bool = False,
        relabel: Relabel | None = None,
        sequence: int | None = None,
    ) -> Sequence[Any] | None:
        """Sequences that begin at any stored step, or None while there are too few.

        `sequence` is their length, else that of the config.
        """
        if batch_size == 0:
            return []
        n = sequence or self._cfg.burn_in + self._cfg.unroll_len
        starts = self._starts(batch_size, sample_range, replace, n)
        if starts is None:
            return None
        self._sampled += batch_size
        self._log_if_due()
        assert self._links is not None
        assert self._store is not None
        chains = self._links.chains(starts, n)
        drawn = self._drawn_chains(self._store, self._links, *chains)
        return Rows(_sequences(drawn, self._cfg, relabel))

    def _starts(
        self, batch_size: int, sample_range: slice | None, replace: bool, n: int
    ) -> np.ndarray | None:
        """Serial numbers of first steps."""
        if self._cfg.padding:
            slots = self._drawn_slots(batch_size, sample_range, replace)
            return None if slots is None else self._serials(slots)
        ages = np.arange(self._serial - self._oldest)
        serials = self._oldest + (ages if sample_range is None else ages[sample_range])
        assert self._links is not None
        whole = serials[self._links.chains(serials, n)[1][:, -1]] if len(serials) else serials
        if not len(whole) or (len(whole) < batch_size and not replace):
            return None
        return whole[draw(self._rng, len(whole), batch_size, replace)]


class AdvancedSequenceReplayBuffer(AdvancedReplayBuffer):
    """The same by priority: that of a step is the priority of the sequence it begins."""

    config: ClassVar[dict[str, Any]] = dict(
        type="advanced_sequence",
        # As in 'sequence', which see; what an episode's end cuts short is always filled up.
        unroll_len=20,
        burn_in=0,
        state_keys=["prev_state", "collect_iter"],
    )

    def __init__(
        self,
        cfg: Mapping[str, Any] | None = None,
        tb_logger: Any = None,
        exp_name: str | None = None,
        instance_name: str = "buffer",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name)
        _check_lengths(self._cfg)

    def _new_links(self) -> Links:
        return Links(self._size, both_ways=self._cfg.links)

    def _read(
        self, slots: np.ndarray, extra: Batch | None = None, relabel: Relabel | None = None
    ) -> Rows:
        n = self._cfg.burn_in + self._cfg.unroll_len
        assert self._links is not None
        assert self._store is not None
        chains = self._links.chains(self._serials(slots), n)
        drawn = self._drawn_chains(self._store, self._links, *chains)
        columns = _sequences(drawn, self._cfg, relabel)
        return Rows({**columns, **(extra or {})})


def _check_lengths(cfg: Any) -> None:
    if cfg.nstep != 1:
        raise ConfigError("nstep has no effect in a buffer of sequences; leave it out")
    if cfg.unroll_len < 1 or cfg.burn_in < 0:
        raise ConfigError(
            f"unroll_len = {cfg.unroll_len}, burn_in = {cfg.burn_in}: must be at least 1 and 0"
        )


def _sequences(drawn: Drawn, cfg: Any, relabel: Relabel | None) -> Batch:
    """Steps of these chains, relabelled, as columns (B, n, ...)."""
    shape = drawn.exist.shape
    columns = drawn.steps if relabel is None else relabelled(relabel, drawn)
    columns = tree_map(lambda leaf: leaf.reshape(*shape, *leaf.shape[1:]), columns)
    for key in cfg.state_keys:
        if key in columns:
            columns[key] = tree_map(lambda leaf: leaf[:, 0], columns[key])
    columns["mask"] = drawn.exist.astype(np.float32)
    columns["burn_in"] = np.full(shape[0], min(cfg.burn_in, shape[1] - 1))
    return with_discount(columns, cfg.discount_factor)
