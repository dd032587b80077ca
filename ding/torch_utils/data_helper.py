"""Moving nested data between NumPy, torch, dtypes and devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ding.utils.batch import tree_map


def to_tensor(
    item: Any, dtype: torch.dtype | None = None, ignore_keys: tuple[str, ...] = ()
) -> Any:
    """Arrays and numbers, however nested, to tensors; None and text stay as they are."""

    def convert(leaf: Any) -> Any:
        if leaf is None or isinstance(leaf, (str, bytes)):
            return leaf
        tensor = torch.as_tensor(leaf)
        if dtype is not None:
            return tensor.to(dtype)
        return tensor.float() if tensor.dtype == torch.float64 else tensor

    if isinstance(item, dict) and ignore_keys:
        return {k: v if k in ignore_keys else to_tensor(v, dtype) for k, v in item.items()}
    return tree_map(convert, item)


def to_ndarray(item: Any, dtype: Any = None) -> Any:
    def convert(leaf: Any) -> Any:
        if leaf is None or isinstance(leaf, (str, bytes)):
            return leaf
        array = leaf.detach().cpu().numpy() if isinstance(leaf, torch.Tensor) else np.asarray(leaf)
        return array if dtype is None else array.astype(dtype)

    return tree_map(convert, item)


def to_list(item: Any) -> Any:
    return tree_map(lambda leaf: leaf.tolist() if hasattr(leaf, "tolist") else leaf, item)


def to_dtype(item: Any, dtype: torch.dtype) -> Any:
    return tree_map(lambda leaf: leaf.to(dtype) if isinstance(leaf, torch.Tensor) else leaf, item)


def to_device(item: Any, device: str | torch.device, ignore_keys: tuple[str, ...] = ()) -> Any:
    """Tensors, however nested, and modules to `device`; on a GPU without waiting for the copy."""

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.nn.Module):
            return leaf.to(device)
        return leaf.to(device, non_blocking=True) if isinstance(leaf, torch.Tensor) else leaf

    if isinstance(item, dict):
        return {k: v if k in ignore_keys else to_device(v, device) for k, v in item.items()}
    return tree_map(move, item)
