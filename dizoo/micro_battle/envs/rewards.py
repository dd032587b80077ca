"""Rewards of battles, by SMAC's names and default numbers.

Letters in shapes: n battles, A allies, U units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ding.utils.errors import ConfigError, nearest
from dizoo.micro_battle.envs.battle import Battles, Outcome

REWARD_TYPES = ("original", "sparse")


@dataclass(frozen=True, kw_only=True)
class Rewards:
    reward_type: str = "original"
    """'original': shaped by damage, deaths and the win; 'sparse': 1 for a win, -1 for a defeat."""
    reward_death_value: float = 10.0
    reward_win: float = 200.0
    reward_defeat: float = 0.0
    reward_only_positive: bool = True
    """Leave out what the allies lose; else it counts by `reward_negative_scale`."""
    reward_negative_scale: float = 0.5
    reward_scale: bool = True
    """Scale so that a win without losses is worth `reward_scale_rate`."""
    reward_scale_rate: float = 20.0

    def __post_init__(self) -> None:
        if self.reward_type not in REWARD_TYPES:
            raise ConfigError(
                f"env.reward_type = {self.reward_type!r}"
                f"{nearest(str(self.reward_type), REWARD_TYPES)}"
            )
        if self.reward_scale and self.reward_scale_rate <= 0:
            raise ConfigError(
                f"env.reward_scale_rate = {self.reward_scale_rate}: must be above 0; it is what a "
                "win is worth"
            )

    @classmethod
    def of(cls, cfg: Mapping[str, Any]) -> Rewards:
        return cls(
            reward_type=cfg["reward_type"],
            reward_death_value=cfg["reward_death_value"],
            reward_win=cfg["reward_win"],
            reward_defeat=cfg["reward_defeat"],
            reward_only_positive=cfg["reward_only_positive"],
            reward_negative_scale=cfg["reward_negative_scale"],
            reward_scale=cfg["reward_scale"],
            reward_scale_rate=cfg["reward_scale_rate"],
        )

    def __call__(self, battles: Battles, outcome: Outcome) -> np.ndarray:
        """(n,): shields that come back are taken off, so that a win is worth the same always."""
        n, won, lost = battles.n_ally, outcome.won.astype(float), outcome.lost
        if self.reward_type == "sparse":
            return won - lost
        value = outcome.damage + self.reward_death_value * outcome.died
        reward = value[:, n:].sum(axis=1)
        if not self.reward_only_positive:
            reward -= self.reward_negative_scale * value[:, :n].sum(axis=1)
        reward += self.reward_win * won + self.reward_defeat * lost
        rate = self.reward_scale_rate / self.most(battles) if self.reward_scale else 1.0
        return reward * rate

    def most(self, battles: Battles) -> float:
        """The sum of all that a win gives, before it is scaled."""
        return battles.full + self.reward_death_value * battles.n_enemy + self.reward_win
