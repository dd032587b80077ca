"""Stack samples into a batch of tensors, and split it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ding.utils.batch import columns_of, tree_map


def as_tensor(value: Any) -> Any:
    """Arrays and numbers to tensors (shared memory where possible); the rest stays as it is."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OUS":
            return value.tolist()
        return torch.from_numpy(value.astype(np.float32) if value.dtype == np.float64 else value)
    return value


def default_collate(rows: Sequence[Any]) -> Any:
    """Stack samples (dicts, tuples, arrays, tensors, numbers) along a new first axis."""
    if not rows:
        raise ValueError("default_collate needs at least one sample")
    return tree_map(as_tensor, columns_of(rows))


def default_decollate(batch: Any) -> list[Any]:
    """Split a batch into samples along the first axis."""
    if isinstance(batch, dict):
        names = list(batch)
        columns = [default_decollate(batch[name]) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    if isinstance(batch, tuple) or (isinstance(batch, list) and isinstance(batch[0], torch.Tensor)):
        rows = zip(*(default_decollate(column) for column in batch), strict=True)
        return [type(batch)(row) for row in rows]
    return list(batch)
