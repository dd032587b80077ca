"""Rows to batches and back."""

from ding.utils.data.collate_fn import default_collate, default_decollate

__all__ = ["default_collate", "default_decollate"]
