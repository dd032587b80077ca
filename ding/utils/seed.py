"""Seeds, and the state of every global generator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ding.utils.errors import DingError


def set_pkg_seed(seed: int, use_cuda: bool = False) -> None:
    """Seed `random`, NumPy and torch (and its CUDA generators)."""
    import torch

    if seed < 0:
        raise DingError(f"seed = {seed}: must not be negative")
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if use_cuda and torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def new_generator() -> np.random.Generator:
    """A generator of its own for a worker, reproducible after `set_pkg_seed`."""
    return np.random.default_rng(np.random.randint(0, 2**31, size=4))


def rng_state() -> dict[str, Any]:
    import torch

    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    import torch

    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.asarray(keys, dtype=np.uint32), *rest))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
