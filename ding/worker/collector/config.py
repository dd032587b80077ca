"""What can be set for all collectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ding.utils.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class CollectorConfig:
    """What the defaults of all collectors have in common."""

    overlap: int | Literal["auto"] = "auto"
    """Policy forwards that may run at once, each for the envs that wait; 'auto' adds threads while
    the policy only waits (for a device or a service). For managers whose envs step out of turn."""


def check_overlap(overlap: Any) -> None:
    if overlap != "auto" and not (isinstance(overlap, int) and overlap >= 1):
        raise ConfigError(
            f"policy.collect.collector.overlap = {overlap!r}: 'auto' or a number from 1 on"
        )
