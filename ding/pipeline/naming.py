"""Names of runs: one that ends in a seed ends in that of its run."""

from __future__ import annotations

import re

_SEED_AT_END = re.compile(r"_seed\d+$")


def name_with_seed(name: str, seed: int, *, add: bool = False) -> str:
    """The name of a run for this seed, where the name ends in one or has to."""
    if _SEED_AT_END.search(name):
        return _SEED_AT_END.sub(f"_seed{seed}", name)
    return f"{name}_seed{seed}" if add else name


def name_without_seed(name: str) -> str:
    return _SEED_AT_END.sub("", name)
