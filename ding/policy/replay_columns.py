"""Columns that a prioritised replay buffer adds to samples."""

from __future__ import annotations

from ding.utils.batch import Batch

BOOKKEEPING = ("replay_unique_id", "replay_buffer_idx", "priority", "use", "staleness", "IS")


def learnable(columns: Batch, *, weighted: bool) -> Batch:
    """Samples without the buffer's own columns; its importance weights as `weight` if wanted."""
    kept = {name: column for name, column in columns.items() if name not in BOOKKEEPING}
    return kept | {"weight": columns["IS"]} if weighted else kept
