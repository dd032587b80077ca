"""Shapes of nested tensors: compare, squeeze, fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ding.utils.batch import tree_map


def _leaves(item: Any) -> list[Any]:
    leaves: list[Any] = []
    tree_map(leaves.append, item)
    return leaves


def same_shape(data: Sequence[Any]) -> bool:
    """Whether all entries have the shape of the first."""
    return len({tuple(entry.shape) for entry in data}) <= 1


def get_shape0(data: Any) -> int:
    """Length of the first axis of the first array inside."""
    return int(_leaves(data)[0].shape[0])


def squeeze(data: Any, dim: int = 0) -> Any:
    return tree_map(lambda leaf: leaf.squeeze(dim), data)


def unsqueeze(data: Any, dim: int = 0) -> Any:
    return tree_map(lambda leaf: leaf.unsqueeze(dim), data)


def unsqueeze_repeat(data: Any, repeat_times: int, unsqueeze_dim: int = 0) -> Any:
    """A new axis along which everything is repeated."""

    def repeat(leaf: Tensor) -> Tensor:
        new = leaf.unsqueeze(unsqueeze_dim)
        return new.repeat_interleave(repeat_times, dim=unsqueeze_dim)

    return tree_map(repeat, data)


def zeros_like(data: Any) -> Any:
    return tree_map(torch.zeros_like, data)


def get_null_data(template: dict[str, Any], num: int) -> list[dict[str, Any]]:
    """`num` rows like `template` that count for nothing: done, without reward, marked `null`."""
    null = {**template, "null": True, "done": True, "reward": zeros_like(template["reward"])}
    return [tree_map(_copied, null) for _ in range(num)]


def _copied(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, Tensor) else leaf


def get_tensor_data(data: Any) -> Any:
    """The same values without gradients, in memory of their own."""
    return tree_map(lambda leaf: leaf.detach().clone() if isinstance(leaf, Tensor) else leaf, data)


def to_item(data: Any, ignore_error: bool = True) -> Any:
    """Arrays of one element to numbers; others stay unless `ignore_error` is off."""

    def item(leaf: Any) -> Any:
        if not hasattr(leaf, "item"):
            return leaf
        size = leaf.numel() if isinstance(leaf, Tensor) else leaf.size
        if size != 1 and not ignore_error:
            raise ValueError(f"an array of shape {tuple(leaf.shape)} is not one number")
        return leaf.item() if size == 1 else leaf

    return tree_map(item, data)


def fold_batch(x: Tensor, nonbatch_ndims: int = 1) -> tuple[Tensor, torch.Size]:
    """(*batch, *rest) -> (prod(batch), *rest) and the batch shape to unfold with."""
    n_batch = x.ndim - nonbatch_ndims
    shape = x.shape[:n_batch]
    return (x.unsqueeze(0), shape) if n_batch == 0 else (x.flatten(0, n_batch - 1), shape)


def unfold_batch(x: Tensor, batch_dims: Sequence[int]) -> Tensor:
    return x.reshape(*batch_dims, *x.shape[1:])
