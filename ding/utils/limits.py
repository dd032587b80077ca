"""Limits: when a run is over at the latest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    train_iter: int = 10**10
    env_step: int = 10**10

    def reached(self, train_iter: int, env_step: int) -> bool:
        return train_iter >= self.train_iter or env_step >= self.env_step

    def fraction(self, train_iter: int, env_step: int) -> float:
        """How much of the run is done, by the limit that is nearer."""
        return max(train_iter / max(self.train_iter, 1), env_step / max(self.env_step, 1))
