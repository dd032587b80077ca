"""Distances between sequences."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def levenshtein_distance(
    pred: Tensor,
    target: Tensor,
    pred_extra: Tensor | None = None,
    target_extra: Tensor | None = None,
    extra_fn: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Insertions, deletions and replacements from `pred` (N,) to `target` (M,), as a scalar tensor.

    With `extra_fn`, two equal entries cost `extra_fn(pred_extra[i], target_extra[j])`.
    """
    if (extra_fn is None) != (pred_extra is None) or (extra_fn is None) != (target_extra is None):
        raise ValueError("give pred_extra, target_extra and extra_fn together or not at all")

    def change(i: int, j: int) -> float:
        if wanted[j] != given[i]:
            return 1.0
        if extra_fn is None or pred_extra is None or target_extra is None:
            return 0.0
        return float(extra_fn(pred_extra[i], target_extra[j]))

    given, wanted = pred.tolist(), target.tolist()
    row = [float(j) for j in range(len(wanted) + 1)]
    for i in range(len(given)):
        above, row = row, [float(i + 1)]
        for j in range(len(wanted)):
            row.append(min(above[j + 1] + 1.0, row[j] + 1.0, above[j] + change(i, j)))
    return torch.tensor(row[-1])


def hamming_distance(pred: Tensor, target: Tensor, weight: float | Tensor = 1.0) -> Tensor:
    """(B, N) of zeros and ones each -> (B,): weighted number of places that differ."""
    if pred.shape != target.shape:
        raise ValueError(f"pred {tuple(pred.shape)} and target {tuple(target.shape)} must agree")
    return ((pred != target).float() * weight).sum(dim=-1)
