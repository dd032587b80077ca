"""Why a loss is no number: what the batch that it came from holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ding.utils.batch import Batch, Rows, stack, tree_map


def columns_to_look_at(data: Any) -> Batch:
    """Columns of whatever was learned from: rows, whole episodes of them, columns, anything."""
    if isinstance(data, Rows):
        return data.columns
    if isinstance(data, Mapping):
        return dict(data)
    if not isinstance(data, (list, tuple)):
        return {"data": data}
    rows = [row for part in data for row in (part if isinstance(part, list) else [part])]
    alike = bool(rows) and all(
        isinstance(row, dict) and row.keys() == rows[0].keys() for row in rows
    )
    return (
        {name: stack([row[name] for row in rows]) for name in rows[0]} if alike else {"data": rows}
    )


def cause_in(columns: Batch) -> str:
    bad = sorted(name for name, column in columns.items() if not _is_finite(column))
    if bad:
        return f"the batch has NaN or infinite numbers in {', '.join(bad)}"
    return (
        "the batch is finite, so the update blew up: lower the learning rate, set "
        "policy.learn.grad_clip_type, or scale rewards and observations"
    )


def _is_finite(column: Any) -> bool:
    found: list[bool] = []

    def look(leaf: Any) -> None:
        if isinstance(leaf, np.ndarray) and leaf.dtype == object:
            found.extend(_is_finite(part) for part in leaf.tolist())
        elif isinstance(leaf, (float, np.ndarray, np.floating, torch.Tensor)):
            array = torch.as_tensor(leaf)
            found.append(bool(torch.isfinite(array).all()))

    tree_map(look, column)
    return all(found)
